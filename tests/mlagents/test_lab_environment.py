"""Worlds as environments of ML-Agents, step for step, and actions and steps as it has them."""

import logging
import re
from pathlib import Path

import numpy as np
import pytest

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.mlagents import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    LabEnvironment,
    ObservationSpec,
    ObservationType,
    TerminalSteps,
)
from aimbot_lab.mlagents.exception import UnityActionException, UnityEnvironmentException
from aimbot_lab.mlagents.player import AlternatingBuffers
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)
from tests.mlagents import llapi_calls
from tests.mlagents.llapi_worlds import GOTO, ROWS, arena, played, race, to_the_right

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "mlagents" / "README.md"
FIRST, SECOND = "Race?team=0", "Race?team=1"
HYBRID = ActionSpec.create_hybrid(2, (3, 4))
SENSOR = ObservationSpec((5,), (DimensionProperty.NONE,), ObservationType.DEFAULT, "sensor")


def test_every_step_is_that_of_the_world() -> None:
    env, world = LabEnvironment(arena(), GOTO, seed=5), arena()
    world.set_scenario(GOTO)
    buffers, masks = step_buffers(world), np.zeros((ROWS, 8), np.bool_)
    world.reset(5, buffers.observations)
    env.reset()
    limit, random = world.spec.continuous_limit, np.random.default_rng(1)
    ended = 0
    for _ in range(60):
        decisions, terminals = env.get_steps("AimbotLab?team=0")
        world.action_masks(masks)
        np.testing.assert_array_equal(decisions.obs[0], buffers.observations)
        np.testing.assert_array_equal(np.concatenate(decisions.action_mask, axis=1), ~masks)
        np.testing.assert_array_equal(terminals.agent_id, buffers.finished.nonzero()[0])
        np.testing.assert_array_equal(
            terminals.obs[0], buffers.final_observations[buffers.finished]
        )
        np.testing.assert_array_equal(terminals.reward, buffers.rewards[buffers.finished])
        going = np.where(buffers.finished, 0, buffers.rewards)
        np.testing.assert_array_equal(decisions.reward, going)
        choices = random.integers(0, world.spec.branches, (ROWS, 3))
        mouse = random.uniform(-1.0, 1.0, (ROWS, 1)).astype(np.float32)
        env.set_actions("AimbotLab?team=0", ActionTuple(mouse, choices))
        env.step()
        actions = np.concatenate([choices, mouse * np.float32(limit)], axis=1)
        world.step(actions.astype(np.float32), buffers)
        ended += buffers.finished.sum()
    assert ended > ROWS


def test_shapes_and_types_are_those_of_ml_agents() -> None:
    env = LabEnvironment(arena(), GOTO)
    env.reset()
    (spec,) = env.behavior_specs.values()
    (sensor,) = spec.observation_specs
    size = len(arena().spec.observation_names)
    assert sensor == (
        (size,),
        (DimensionProperty.NONE,),
        ObservationType.DEFAULT,
        f"VectorSensor_size{size}",
    )
    assert spec.action_spec == (1, (3, 3, 2))
    played(env, 30)
    decisions, terminals = env.get_steps("AimbotLab?team=0")
    assert len(terminals) == ROWS
    for steps in (decisions, terminals):
        assert (steps.obs[0].shape, steps.obs[0].dtype) == ((ROWS, size), np.float32)
        assert (steps.reward.shape, steps.reward.dtype) == ((ROWS,), np.float32)
        assert (steps.agent_id.dtype, steps.group_id.dtype) == (np.int32, np.int32)
        assert steps.group_reward.dtype == np.float32
    assert terminals.interrupted.dtype == np.bool_
    assert [mask.shape for mask in decisions.action_mask] == [(ROWS, 3), (ROWS, 3), (ROWS, 2)]


def test_each_agent_of_a_row_is_a_team_of_its_own() -> None:
    env = race()
    env.reset()
    assert list(env.behavior_specs) == [FIRST, SECOND]
    assert list(env.get_steps(SECOND)[0]) == list(range(ROWS, 2 * ROWS))
    for _ in range(3):
        env.set_actions(FIRST, to_the_right())
        env.set_actions(SECOND, ActionTuple(discrete=np.ones((ROWS, 1))))
        env.step()
    (going, won), lost = env.get_steps(FIRST), env.get_steps(SECOND)[1]
    assert list(won) == list(going) == list(range(ROWS))  # one of the next episode also decides
    assert not going.reward.any()
    assert not going.obs[0].any()
    assert (won.reward.tolist(), lost.reward.tolist()) == ([1.0] * ROWS, [-1.0] * ROWS)
    np.testing.assert_array_equal(won.obs[0][:, 0], 3.0)
    assert not won.interrupted.any()


def test_an_episode_that_is_cut_off_is_interrupted() -> None:
    env = race()
    env.reset()
    for _ in range(12):
        assert len(env.get_steps(FIRST)[1]) == 0
        env.set_actions(FIRST, ActionTuple(discrete=np.ones((ROWS, 1))))
        env.set_actions(SECOND, ActionTuple(discrete=np.ones((ROWS, 1))))
        env.step()
    assert env.get_steps(FIRST)[1].interrupted.all()


def test_actions_that_are_not_set_are_zeros_and_one_is_set_for_one_agent_alone() -> None:
    env = race(agents=1)
    env.reset()
    env.step()
    np.testing.assert_array_equal(env.get_steps(FIRST)[0].obs[0][:, 0], -1.0)
    env.set_actions(FIRST, given := to_the_right())
    env.set_action_for_agent(FIRST, 3, ActionTuple(discrete=np.array([[1]])))
    env.step()
    assert env.get_steps(FIRST)[0].obs[0][:, 0].tolist() == [0, 0, 0, -1, 0, 0, 0, 0]
    assert (given.discrete == 2).all()


def test_rewards_and_masks_that_alone_are_kept_stay_as_they_were_given() -> None:
    env = LabEnvironment(arena(), GOTO)
    env.reset()
    played(env, 1)
    steps = env.get_steps("AimbotLab?team=0")[0]
    kept = [steps.reward, *steps.action_mask]
    copies = [array.copy() for array in kept]
    del steps
    played(env, 20)
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_zero_is_the_middle_of_a_continuous_range_and_one_its_end() -> None:
    env, world = LabEnvironment(arena(1), GOTO), arena(1)
    env.reset()
    start = env.get_steps("AimbotLab?team=0")[0].obs[0][0]
    names = world.spec.observation_names
    turned = []
    for mouse in (0.0, 1.0, 7.0, -1.0):
        env = LabEnvironment(arena(1), GOTO)
        env.reset()
        env.set_actions("AimbotLab?team=0", ActionTuple(np.array([[mouse]]), np.ones((1, 3))))
        env.step()
        seen = env.get_steps("AimbotLab?team=0")[0].obs[0][0]
        turned.append(seen[names.index("sin_yaw")])
    assert turned[0] == start[names.index("sin_yaw")]
    assert turned[1] == turned[2] != turned[0]
    assert turned[3] != turned[1]


def test_resets_begin_other_episodes_and_a_seed_repeats_them() -> None:
    def firsts(seed: int) -> list[np.ndarray]:
        env, seen = LabEnvironment(arena(), GOTO, seed=seed), []
        for _ in range(3):
            env.reset()
            seen.append(env.get_steps("AimbotLab?team=0")[0].obs[0])
        return seen

    first, again, other = firsts(1), firsts(1), firsts(2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[1], first[2])
    assert not np.array_equal(first[1], other[1])


def test_nothing_is_known_before_the_first_reset_and_a_step_is_one() -> None:
    env = race()
    assert dict(env.behavior_specs) == {}
    with pytest.raises(UnityActionException, match="none before the first reset"):
        env.get_steps(FIRST)
    env.step()
    assert len(env.get_steps(FIRST)[0]) == ROWS


def test_a_closed_environment_says_so() -> None:
    env = race()
    env.close()
    for call in (env.reset, env.step, env.close):
        with pytest.raises(UnityEnvironmentException, match="is closed"):
            call()


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (
            ActionTuple(discrete=np.ones((ROWS - 1, 1))),
            r"continuous .* \(8, 0\), .* \(got \(7, 0\)\)",
        ),
        (ActionTuple(discrete=np.ones((ROWS, 2))), r"discrete .* \(got \(8, 2\)\)"),
        (ActionTuple(np.ones((ROWS, 1)), np.ones((ROWS, 1))), r"continuous .* \(8, 0\)"),
        (np.ones((ROWS, 1)), r"\(got None\)"),
    ],
)
def test_actions_of_another_shape_are_refused(action: ActionTuple, says: str) -> None:
    env = race()
    env.reset()
    with pytest.raises(UnityActionException, match=says):
        env.set_actions(FIRST, action)


def test_a_behavior_and_an_agent_that_there_are_not_are_refused() -> None:
    env = race()
    env.reset()
    with pytest.raises(
        UnityActionException, match=r"no behavior 'Runner'; there are: Race\?team=0"
    ):
        env.set_actions("Runner", to_the_right())
    with pytest.raises(IndexError, match="agent_id 8 did not request a decision"):
        env.set_action_for_agent(FIRST, ROWS, to_the_right(1))


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (ActionTuple(np.array([[np.nan]]), np.zeros((1, 3))), "mouse is nan"),
        (
            ActionTuple(np.zeros((1, 1)), np.array([[0, 3, 0]])),
            "horizontal move is 3; allowed is one of",
        ),
    ],
)
def test_an_action_that_does_not_exist_leaves_the_world_as_it_was(
    action: ActionTuple, says: str
) -> None:
    env, name = LabEnvironment(arena(1), GOTO), "AimbotLab?team=0"
    env.reset()
    before = env.get_steps(name)[0].obs[0].copy()
    env.set_actions(name, action)
    with pytest.raises(UnityActionException, match=says):
        env.step()
    np.testing.assert_array_equal(env.get_steps(name)[0].obs[0], before)
    env.set_actions(name, ActionTuple(np.zeros((1, 1)), np.ones((1, 3))))
    env.step()


@pytest.mark.parametrize("name", ["", "A?team=1", "Ä"])
def test_a_behavior_name_that_trainers_misread_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="behavior name: must be ASCII"):
        LabEnvironment(arena(1), GOTO, name=name)


def test_a_scenario_that_the_world_does_not_have_is_refused() -> None:
    with pytest.raises(LabError, match="nobody"):
        LabEnvironment(arena(1), Scenario({"nobody": 1.0}))


def test_parameters_that_are_set_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    channel = EnvironmentParametersChannel()
    env = LabEnvironment(arena(), GOTO, side_channels=[channel])
    channel.set_float_parameter("time_limit", 2.0)
    channel.set_uniform_sampler_parameters("move_speed", 4.0, 6.0, seed=3)
    channel.set_float_parameter("gravity", 7.0)
    with caplog.at_level(logging.INFO, logger="aimbot_lab.mlagents"):
        env.reset()
    time_limit, move_speed, gravity = caplog.messages
    assert time_limit == "environment parameter time_limit: 2.0"
    assert move_speed.startswith("environment parameter move_speed: Uniform(")
    assert "gravity" in gravity
    assert "ignored" in gravity


def buffers() -> AlternatingBuffers:
    """Of three rows of the arena."""
    world = arena(3)
    world.set_scenario(GOTO)
    return AlternatingBuffers(world)


def written(pair: AlternatingBuffers, number: float) -> np.ndarray:
    """What is given after a step that writes `number` everywhere."""
    pair.turn().observations.fill(number)
    return pair.give()


@pytest.mark.parametrize("part", [slice(None), np.s_[1:2], np.s_[:, 3]])
def test_what_is_kept_stays_as_it_was_given(part: object) -> None:
    pair, kept = buffers(), []
    for number in range(9):
        if number in (2, 3, 6):
            kept.append((number, written(pair, number)[part]))
        else:
            written(pair, number)
    for number, array in kept:
        assert (array == number).all()


def test_the_last_step_stays_while_the_next_is_written_in_one_of_two_sets_of_arrays() -> None:
    pair = buffers()
    last = written(pair, 0)
    places = {last.ctypes.data}
    for number in range(1, 9):
        following = written(pair, number)
        assert (last == number - 1).all()
        last = following
        places.add(last.ctypes.data)
    assert len(places) == 2


def test_the_code_of_the_page_runs(capsys) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    episodes = int(capsys.readouterr().out.split()[0])
    assert episodes >= 64


def test_modules_have_the_names_that_they_have_in_ml_agents() -> None:
    api = llapi_calls.interface("aimbot_lab.mlagents", "aimbot_lab.mlagents.base_env")
    for name in (
        *("ActionSpec", "ActionTuple", "BehaviorSpec", "DecisionSteps", "TerminalSteps"),
        *("ObservationSpec", "DimensionProperty", "UnityActionException", "SideChannel"),
        *("EngineConfigurationChannel", "EnvironmentParametersChannel", "StatsSideChannel"),
        *("FloatPropertiesChannel", "RawBytesChannel", "IncomingMessage", "OutgoingMessage"),
    ):
        assert isinstance(getattr(api, name), type)


@pytest.mark.parametrize(
    ("spec", "continuous", "discrete"),
    [
        (ActionSpec.create_continuous(2), True, False),
        (ActionSpec.create_discrete((3,)), False, True),
        (HYBRID, False, False),
        (ActionSpec(0, ()), False, False),
    ],
)
def test_a_spec_knows_its_kind(spec: ActionSpec, continuous: bool, discrete: bool) -> None:
    assert (spec.is_continuous(), spec.is_discrete()) == (continuous, discrete)


def test_a_spec_reads_as_in_ml_agents() -> None:
    assert str(HYBRID) == "Continuous: 2, Discrete: (3, 4)"
    assert HYBRID.discrete_size == 2


@pytest.mark.parametrize("spec", [HYBRID, ActionSpec(2, ()), ActionSpec(0, (3,))])
def test_empty_actions_are_zeros_of_both_kinds(spec: ActionSpec) -> None:
    action = spec.empty_action(6)
    assert action.continuous.shape == (6, spec.continuous_size)
    assert action.discrete.shape == (6, spec.discrete_size)
    assert (action.continuous.dtype, action.discrete.dtype) == (np.float32, np.int32)
    assert not action.continuous.any()
    assert not action.discrete.any()


def test_random_actions_reach_every_choice_and_follow_numpys_seed() -> None:
    np.random.seed(3)
    action = HYBRID.random_action(400)
    np.random.seed(3)
    again = HYBRID.random_action(400)
    assert [set(branch) for branch in action.discrete.T.tolist()] == [{0, 1, 2}, {0, 1, 2, 3}]
    assert -1 <= action.continuous.min() < -0.9 < 0.9 < action.continuous.max() <= 1
    np.testing.assert_array_equal(action.continuous, again.continuous)
    np.testing.assert_array_equal(action.discrete, again.discrete)


def test_a_tuple_converts_types_and_fills_what_is_not_given() -> None:
    action = ActionTuple(discrete=np.ones((3, 2), np.int64))
    assert (action.discrete.dtype, action.continuous.shape) == (np.int32, (3, 0))
    action.add_continuous(np.ones((3, 1), np.float64))
    assert (action.continuous.dtype, action.discrete.shape) == (np.float32, (3, 2))


def test_steps_are_found_by_the_agents_ids() -> None:
    ids = np.array([7, 3], np.int32)
    seen = np.arange(10, dtype=np.float32).reshape(2, 5)
    zeros = np.zeros(2, np.int32)
    masks = [np.array([[True, False], [False, True]])]
    rewards = np.array([1, 2], np.float32)
    decisions = DecisionSteps([seen], rewards, ids, masks, zeros, zeros.astype(np.float32))
    assert (len(decisions), list(decisions), 3 in decisions) == (2, [7, 3], True)
    assert decisions.agent_id_to_index == {7: 0, 3: 1}
    one = decisions[3]
    assert (one.reward, one.agent_id, one.group_id, one.group_reward) == (2.0, 3, 0, 0.0)
    np.testing.assert_array_equal(one.obs[0], seen[1])
    np.testing.assert_array_equal(one.action_mask[0], [False, True])
    terminals = TerminalSteps(
        [seen], rewards, np.array([True, False]), ids, zeros, zeros.astype(np.float32)
    )
    assert (terminals[7].interrupted, terminals[3].interrupted) == (True, False)


@pytest.mark.parametrize("kind", [DecisionSteps, TerminalSteps])
def test_an_agent_without_a_step_is_a_key_that_is_missing(kind: type[DecisionSteps]) -> None:
    steps = kind.empty(BehaviorSpec([SENSOR], HYBRID))
    assert (len(steps), steps.obs[0].shape, steps.agent_id.dtype) == (0, (0, 5), np.int32)
    with pytest.raises(KeyError, match=f"agent_id 4 is not present in the {kind.__name__}"):
        steps[4]

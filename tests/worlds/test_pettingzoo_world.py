"""Parallel environments of PettingZoo as a world: seats, ends, masks, faults, resuming."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pole_curriculum import agent_of, planned, trained

from aimbot_lab.evaluation.episodes import play
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.world import COLUMNS, Scenario, step_buffers
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.worlds.registry import make_world, type_of
from tests.worlds.walkers import COMES, LAST, Walkers, walkers

WINS = {"info": "is_success"}
HERE = Walkers.__module__


def begun(**given: Any) -> tuple[Any, Any]:
    """A world just reset, and buffers with what it shows."""
    world = walkers(**given)
    world.set_scenario(Scenario({"task": 1.0}))
    buffers = step_buffers(world)
    world.reset(0, buffers.observations)
    return world, buffers


def moved(world: Any, buffers: Any, *moves: int) -> Any:
    """A step in which each agent makes the same move in every row."""
    return world.step(np.repeat(np.array(moves, np.float32) + 1, world.num_envs)[:, None], buffers)


def test_a_seat_idles_before_its_agent_comes_and_after_it_has_ended() -> None:
    world, buffers = begun(rows=2, win=WINS)
    seen = buffers.observations.reshape(3, 2, 3)
    assert (seen[2] == [0, 0, 1]).all(), "zeros, as far as the bounds allow"
    assert (seen[:2, :, 2] == 2).all()
    starts = seen[0, :, 0].copy()
    for step in range(1, LAST + 1):
        batch = moved(world, buffers, 1, 0, -1)
        if step == COMES:
            assert (seen[2, :, 2] == 2).all()
        if step < LAST:
            gained = np.where(starts + step == 4, 0.9, np.where(starts + step > 4, 0.0, -0.1))
            np.testing.assert_allclose(buffers.rewards.reshape(3, 2)[0], gained)
            assert (seen[0, starts + step >= 4] == [0, 0, 1]).all()
        assert bool(batch) == (step == LAST)
    assert buffers.truncated.reshape(3, 2).tolist() == [[False] * 2, [True] * 2, [True] * 2]
    assert buffers.final_observations.reshape(3, 2, 3)[1, :, 2].tolist() == [2, 2]
    assert batch.outcome.reshape(3, 2).tolist() == [[1, 1], [-1, -1], [-1, -1]]
    assert batch.length.tolist() == [LAST] * 6
    np.testing.assert_allclose(batch.returns.reshape(3, 2)[1:], [[-1.2] * 2, [-0.9] * 2], rtol=1e-6)
    np.testing.assert_allclose(batch.returns[:2], 0.9 - 0.1 * (3 - starts))


@pytest.mark.parametrize(
    ("win", "outcomes"),
    [
        ({"return_above": 0}, [1, -1, -1]),
        ({"length_above": 10}, [-1, 1, -1]),
        ({"terminated": "win"}, [1, -1, -1]),
        ({"terminated": "loss"}, [-1, 1, 1]),
    ],
)
def test_each_agent_is_judged_by_its_own_steps_rewards_and_end(
    win: dict[str, Any], outcomes: list[int]
) -> None:
    world, buffers = begun(rows=1, win=win)
    while not (batch := moved(world, buffers, 1, 0, -1)):
        pass
    assert batch.outcome.tolist() == outcomes


def test_an_episode_is_cut_off_after_as_many_steps_as_are_said() -> None:
    world, buffers = begun(rows=1, max_episode_steps=COMES + 1)
    for _ in range(COMES):
        assert not moved(world, buffers, 0, 0, 0)
    assert moved(world, buffers, 0, 0, 0).length.tolist() == [COMES + 1] * 3
    assert buffers.truncated.all()
    assert world.spec.max_steps == COMES + 1


@pytest.mark.parametrize("dropped", [["word"], ["word", "numbers"]])
def test_pictures_are_seen_and_entries_left_out_by_their_own_names(dropped: list[str]) -> None:
    parts = {"drop": dropped, "pictures": {"eye": "hwc"}}
    given: Any = {"rows": 2, "kwargs": {"pictures": True}, "observation": parts}
    world, buffers = begun(**given)
    names = ["eye", "numbers"] if len(dropped) == 1 else ["eye"]
    assert [block.name for block in world.spec.blocks] == names
    assert buffers.observations["eye"].shape == (6, 8, 9, 3)
    plain_world, plain = begun(rows=2)
    for _ in range(LAST + COMES):
        seen, place = buffers.observations, plain.observations[:, 0].astype(np.uint8)
        assert (seen["eye"] == place[:, None, None, None]).all()
        if len(names) == 2:
            np.testing.assert_array_equal(seen[COLUMNS], plain.observations)
        moved(world, buffers, 1, 1, 0)
        moved(plain_world, plain, 1, 1, 0)


def test_several_processes_give_the_bits_of_one() -> None:
    worlds = [begun(rows=5, processes=number, win=WINS) for number in (1, 2)]
    act = RandomAgent(worlds[0][0].spec, 0)
    for _ in range(30):
        actions = act(worlds[0][1].observations)
        batches = [world.step(actions, buffers) for world, buffers in worlds]
        for array, same in zip(worlds[0][1], worlds[1][1], strict=True):
            np.testing.assert_array_equal(array, same)
        for name in ("outcome", "returns", "order", "running_order"):
            np.testing.assert_array_equal(*(getattr(one, name) for one in batches))
    for world, _ in worlds:
        world.close()


def test_running_episodes_go_on_to_the_bit_with_who_has_ended_and_who_comes() -> None:
    (world, buffers), other = begun(win=WINS), walkers(win=WINS)
    act = RandomAgent(world.spec, 0)
    for _ in range(LAST + COMES):
        world.step(act(buffers.observations), buffers)
    other.restore(world.snapshot())
    others = step_buffers(other)
    assert not other.resume_episodes(others.observations).any()
    np.testing.assert_array_equal(others.observations, buffers.observations)
    for _ in range(LAST):
        actions = act(buffers.observations)
        batches = world.step(actions, buffers), other.step(actions, others)
        np.testing.assert_array_equal(others.rewards, buffers.rewards)
        np.testing.assert_array_equal(*(batch.returns for batch in batches))
        np.testing.assert_array_equal(*(batch.running_order for batch in batches))


def test_a_parameter_reaches_the_environment_below_a_wrapper_of_pettingzoo() -> None:
    world = walkers(id="tests.worlds.walkers:wrapped", rows=1)
    world.set_scenario(Scenario({"task": 1.0}, parameters={"goal": 7.0}))
    buffers = step_buffers(world)
    world.reset(0, buffers.observations)
    assert buffers.observations[:2, 1].tolist() == [7, 7]
    with pytest.raises(ConfigurationError, match=r"Walkers has no number .* \(it has goal"):
        world.set_scenario(Scenario({"task": 1.0}, parameters={"gaol": 7.0}))


def refused(path: Path, **env: Any) -> list[str]:
    given = {"world": "pettingzoo", "id": "tests.worlds.walkers:Walkers", **env}
    path.write_text(f"name: x\nenv: {given}\ntrain: {{algo: ppo, total_steps: 9}}\n")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path, may_run=always)
    return [line.partition("c.yaml:")[2] for line in caught.value.faults]


@pytest.mark.parametrize(
    ("id", "what"),
    [
        ("nowhere:env", "env.id: there is no module nowhere: install its package, or call "),
        (f"{HERE}:LAST", f"env.id: {HERE} has no LAST: give module:fun"),
        (f"{HERE}:aec_env", "returns pettingzoo.utils.aec_to_parallel(env)"),
        (f"{HERE}:Nameless", "makes a Nameless that has no possible_agents; a "),
        (f"{HERE}:Unequal", "have different action spaces (Discrete(3) and Discrete(4))"),
        (f"{HERE}:Unclosable", "have different action spaces (Discrete(3) and"),
        (f"{HERE}:nobody", "its possible_agents must name at least one, each once"),
    ],
)
def test_an_environment_that_is_no_such_world_is_refused_in_a_line(
    tmp_path: Path, id: str, what: str
) -> None:
    lines = refused(tmp_path / "c.yaml", id=id)
    assert [what in line for line in lines] == [True], lines


def test_without_pettingzoo_its_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aimbot_lab.worlds.pettingzoo.joint_env.find_spec", lambda _: None)
    (line,) = refused(tmp_path / "c.yaml", kwargs={"goal": 5})
    assert "world pettingzoo needs PettingZoo: pip install 'aimbot-lab[pettingzoo]'" in line


NANS = np.full(3, np.nan, np.float32)
SPOILT: dict[str, Any] = {
    "reset must return (observations, infos), each a dict": lambda seen, _: seen,
    "reset gave no observation of walker_0, which takes part": lambda *_: ({}, {}),
    "step must return (observations, rewards, terminations, ": lambda *given: given[:4],
    "step gave no termination of walker_0, ": lambda *given: (*given[:2], {}, {}, {}),
    "step gave no observation of walker_0, which takes": lambda _, *rest: ({}, *rest),
    "step gave walker_1 a reward of nan": lambda seen, rewards, *rest: (
        *(seen, {**rewards, "walker_1": np.nan}),
        *rest,
    ),
    "step gave walker_0 an info that is not a dict": lambda *given: (*given[:4], {"walker_0": 3}),
    "step gave walker_1_0 as nan": lambda seen, *rest: ({**seen, "walker_1": NANS}, *rest),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_it_must_not_give_is_told_with_the_agent(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    call, change = what.partition(" ")[0], SPOILT[what]
    own = getattr(Walkers, call)
    monkeypatch.setattr(Walkers, call, lambda *given, **named: change(*own(*given, **named)))
    with pytest.raises(RunFailedError) as caught:
        moved(*begun(rows=1), 0, 0, 0)
    assert str(caught.value).startswith(f"{HERE}:Walkers: its {what}")
    assert len(str(caught.value).splitlines()) == 1


def test_agents_that_are_not_there_or_not_known_are_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, buffers = begun(rows=1)
    world._copies._envs[0].env.agents.append("stranger")
    with pytest.raises(RunFailedError, match="its step has the agent stranger, which possible_ag"):
        moved(world, buffers, 0, 0, 0)
    own = Walkers.step

    def leaving(self: Walkers, actions: Any) -> Any:
        given = own(self, actions)
        self.agents = self.agents[1:]
        return given

    monkeypatch.setattr(Walkers, "step", leaving)
    world, buffers = begun(rows=1)
    with pytest.raises(RunFailedError, match=r"its step took walker_0 out of env.agents with n"):
        moved(world, buffers, 0, 0, 0)
    nobody = property(lambda self: [], lambda self, given: None)
    monkeypatch.setattr(Walkers, "agents", nobody, raising=False)
    with pytest.raises(RunFailedError, match=r"its reset left env.agents empty, so that no agent"):
        begun(rows=1)


def test_infos_may_be_missing_and_types_may_be_others() -> None:
    worlds = [begun(rows=2, id=f"tests.worlds.walkers:{name}") for name in ("Walkers", "Loose")]
    for _ in range(2 * LAST):
        batches = [moved(world, buffers, 1, 0, -1) for world, buffers in worlds]
        for array, same in zip(worlds[0][1], worlds[1][1], strict=True):
            np.testing.assert_array_equal(array, same)
        np.testing.assert_array_equal(batches[0].returns, batches[1].returns)


MASKED = """
name: masked
env: {world: pettingzoo, id: "tests.worlds.walkers:Walkers", num_envs: 4, ENV}
train: {algo: ALGO, total_steps: 576, n_steps: 24, batch_size: 72, n_epochs: 2, learning_rate: 0.1}
"""


@pytest.mark.parametrize(
    ("algo", "env"),
    [
        ("maskable_ppo", "kwargs: {masks: observation, strict: true}"),
        (
            "hybrid_ppo, masks: true",
            "kwargs: {masks: info, strict: true}, masks: {info: action_mask}",
        ),
    ],
)
def test_masks_are_heeded_in_training_and_evaluation(tmp_path: Path, algo: str, env: str) -> None:
    """The environment raises where one is not."""
    plan = planned(tmp_path / "c.yaml", algo, MASKED.replace("ENV", env))
    world, agent = make_world(plan.env), agent_of(trained(plan))
    random = type_of(plan.env).baselines(plan.env)["random"]
    for player in (agent.player(world), random(world, 1)):
        play(world, player, Cell("task", 0), seed=1)


def test_masks_that_are_missing_or_leave_nothing_are_told_with_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(RunFailedError, match=r"its reset gave no 'mask' in its info, .*walker_0\)"):
        begun(rows=1, masks={"info": "mask"})
    monkeypatch.setattr(Walkers, "allowed", lambda *_: np.zeros(3, np.int8))
    with pytest.raises(RunFailedError, match=r"gave no choice for action \(agent walker_0\)"):
        begun(rows=1, kwargs={"masks": "observation"})


DUEL = """
name: duel
env:
  world: pettingzoo
  id: aimbot_lab.adapters.duel_v0
  kwargs: {opponent: still, difficulty: 1, time_limit: 2.0, action: hybrid}
  masks: {info: action_mask}
  win: {info: is_success}
  num_envs: 2
train: {algo: hybrid_ppo, aim: hybrid, masks: true, total_steps: 128, n_steps: 32, batch_size: 32}
"""


def test_the_duel_in_pettingzoo_trains_with_its_masks(tmp_path: Path) -> None:
    plan = planned(tmp_path / "c.yaml", "", DUEL)
    spec = make_world(plan.env).spec
    assert (spec.agents, spec.branches, spec.can("masks")) == (1, (3, 3, 2), True)
    assert trained(plan).model.num_timesteps == 128


@pytest.mark.campaign
def test_the_duel_in_pettingzoo_learns_to_beat_who_stands_still(tmp_path: Path) -> None:
    text = DUEL.replace("time_limit: 2.0", "time_limit: 20").replace("num_envs: 2", "num_envs: 16")
    longer = "150_000, n_steps: 128, batch_size: 512"
    text = text.replace("128, n_steps: 32, batch_size: 32", longer)
    text = text.replace("aim: hybrid", "aim: hybrid, learning_rate: 0.001")
    plan = planned(tmp_path / "c.yaml", "", text)
    world, agent = make_world(plan.env, 64), agent_of(trained(plan))
    assert play(world, agent.player(world), Cell("task", 0), seed=1).won.mean() > 0.9

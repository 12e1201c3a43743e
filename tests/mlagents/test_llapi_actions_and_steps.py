"""Actions and steps as ML-Agents has them."""

import numpy as np
import pytest

from aimbot_lab.mlagents import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
    TerminalSteps,
)

HYBRID = ActionSpec.create_hybrid(2, (3, 4))
SENSOR = ObservationSpec((5,), (DimensionProperty.NONE,), ObservationType.DEFAULT, "sensor")


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

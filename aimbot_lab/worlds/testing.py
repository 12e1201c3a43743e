"""The laws of a world, as checks that any world can be held against, a stranger's too.

    import pytest
    from aimbot_lab.worlds.testing import CHECKS, Subject

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_world_is_a_world(check):
        check(Subject(lambda rows: MyWorld(MySettings(num_envs=rows)), Scenario({"task": 1.0})))

Each check makes worlds of its own, plays them with random actions and raises AssertionError, which
says what does not hold. What needs an ability is checked where the world's spec has it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.world import BatchWorld, Scenario, StepBuffers, new_step_buffers


@dataclass(frozen=True)
class Subject:
    """A world to be checked."""

    make: Callable[[int], BatchWorld]  # number of rows to a fresh world
    scenario: Scenario
    rows: int = 4
    steps: int = 300  # in which some episodes should end


@dataclass(frozen=True)
class Step:
    """What one step gave, copied."""

    rewards: np.ndarray  # [B]
    finished: np.ndarray  # [B]
    truncated: np.ndarray  # [B]
    observations: np.ndarray  # [B, D]
    final_observations: np.ndarray  # [B, D]
    episodes: EpisodeBatch
    running_order: np.ndarray  # [B]


def the_spec_agrees_with_itself(subject: Subject) -> None:
    """Names, bounds, targets and abilities fit each other."""
    spec = subject.make(1).spec
    width = len(spec.observation_names)
    assert len(set(spec.observation_names)) == width > 0, "observation names must differ"
    assert spec.observation_low.shape == spec.observation_high.shape == (width,)
    assert (spec.observation_low <= spec.observation_high).all(), "a lower bound exceeds the upper"
    assert spec.targets.keys() == spec.difficulties.keys(), "targets and difficulties must agree"
    assert all(size >= 1 for size in spec.branches)
    assert len(spec.branches) + spec.continuous > 0, "there must be something to do"
    if spec.action_names:
        assert len(spec.action_names) == len(spec.branches) + spec.continuous
    assert spec.reward_terms, "there must be a reward term"
    assert spec.decision_seconds > 0


def the_same_seed_gives_the_same_bits(subject: Subject) -> None:
    """Two worlds with the same seed and actions are equal, and another seed's are not all."""
    one, two = (list(_play(_begun(subject, 7), subject)) for _ in range(2))
    for step, other in zip(one, two, strict=True):
        _assert_equal(step, other)


def an_episode_begins_from_its_seed_alone(subject: Subject) -> None:
    """How first episodes begin does not depend on how many rows there are, where `paired`."""
    few, many = subject.make(2), subject.make(5)
    if not few.spec.can("paired"):
        return
    seen = []
    for world in (few, many):
        world.set_scenario(subject.scenario)
        observations = _observations(world)
        world.reset(11, observations)
        seen.append(observations)
    np.testing.assert_array_equal(seen[0], seen[1][:2])


def observations_lie_in_their_bounds(subject: Subject) -> None:
    """Every number of an observation is finite and within what the spec declares."""
    world = _begun(subject, 1)
    slack = 1e-3
    for step in _play(world, subject):
        for seen in (step.observations, step.final_observations[step.finished]):
            assert np.isfinite(seen).all(), "an observation is not finite"
            assert (seen >= world.spec.observation_low - slack).all(), "below its lower bound"
            assert (seen <= world.spec.observation_high + slack).all(), "above its upper bound"


def episodes_are_counted_whole(subject: Subject) -> None:
    """Lengths and reward terms of an episode are those of its steps; ranks rise; none is lost."""
    world = _begun(subject, 2)
    lengths, returns = np.zeros(subject.rows, int), np.zeros(subject.rows)
    ended, ranks = 0, set()
    for step in _play(world, subject):
        lengths += 1
        returns += step.rewards
        batch = step.episodes
        assert sorted(batch.row.tolist()) == np.flatnonzero(step.finished).tolist()
        for place, row in enumerate(batch.row.tolist()):
            assert batch.length[place] == lengths[row], "length is not the number of steps"
            total = batch.terms[place].sum()
            assert np.isclose(total, returns[row], rtol=1e-4, atol=1e-2), "terms and rewards differ"
            assert batch.order[place] not in ranks, "two episodes have the same rank"
            assert step.running_order[row] > batch.order[place], "ranks must rise"
            ranks.add(int(batch.order[place]))
            lengths[row], returns[row] = 0, 0.0
            ended += 1
    assert ended > 0, f"no episode ended in {subject.steps} steps: give the subject more"


def only_what_ended_can_be_cut_off(subject: Subject) -> None:
    """`truncated` is True only where `finished` is, and both are written in every step."""
    for step in _play(_begun(subject, 3), subject, dirty=True):
        assert not (step.truncated & ~step.finished).any()
        assert step.finished.any() == bool(step.episodes)


def a_wrong_action_changes_nothing(subject: Subject) -> None:
    """ActionError for what is no action, after which the world goes on as if nothing was."""
    one, two = _begun(subject, 4), _begun(subject, 4)
    branches, width = len(one.spec.branches), len(one.spec.branches) + one.spec.continuous
    wrong = np.zeros((subject.rows, width), np.float32)
    wrong[-1, 0] = one.spec.branches[0] if branches else np.nan
    buffers = _buffers(one)
    for actions in (wrong, wrong[:, :-1], np.full_like(wrong, np.nan)):
        _assert_raises(ActionError, one.step, actions, buffers)
    for step, other in zip(_play(one, subject, 20), _play(two, subject, 20), strict=True):
        _assert_equal(step, other)


def misuse_is_refused(subject: Subject) -> None:
    """LabError for a step before a reset, for buffers of another shape, and for no such seed."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    actions = _actions(world, 0)(_observations(world))
    _assert_raises(LabError, world.step, actions, _buffers(world))
    _assert_raises(LabError, world.reset, 1.5, _observations(world))
    _assert_raises(LabError, world.reset, 1, _observations(world)[:-1])
    world.reset(1, _observations(world))
    short = _buffers(world)._replace(rewards=np.zeros(subject.rows + 1, np.float32))
    _assert_raises(LabError, world.step, actions, short)


def scenarios_are_numbered_and_checked(subject: Subject) -> None:
    """Numbers rise; what there is not is refused, and leaves the scenario in force."""
    world = subject.make(subject.rows)
    assert world.scenario_number == 0
    first, second = world.set_scenario(subject.scenario), world.set_scenario(subject.scenario)
    assert 0 < first < second == world.scenario_number
    for scenario in (
        Scenario({"no such target": 1.0}),
        Scenario(subject.scenario.targets, parameters={"no such parameter": 1.0}),
        Scenario({}),
    ):
        _assert_raises(ConfigurationError, world.set_scenario, scenario)
    assert world.scenario_number == second


def episodes_know_their_scenario(subject: Subject) -> None:
    """A new scenario holds for episodes that begin after it; running ones keep theirs."""
    world = _begun(subject, 5)
    before = world.scenario_number
    begun_before = {int(rank) for step in _play(world, subject, 1) for rank in step.running_order}
    after = world.set_scenario(subject.scenario)
    for step in _play(world, subject):
        for rank, scenario in zip(step.episodes.order, step.episodes.scenario, strict=True):
            assert scenario == (before if int(rank) in begun_before else after)


def masks_leave_a_choice(subject: Subject) -> None:
    """No branch is masked as a whole, and without the ability nothing is."""
    world = _begun(subject, 6)
    masks = np.zeros((subject.rows, sum(world.spec.branches)), np.bool_)
    for _ in _play(world, subject, 50):
        masks[:] = False
        world.action_masks(masks)
        start = 0
        for size in world.spec.branches:
            assert masks[:, start : start + size].any(axis=1).all(), "a branch has no choice left"
            start += size
        assert world.spec.can("masks") or masks.all()


def a_snapshot_goes_on_bit_for_bit(subject: Subject) -> None:
    """From a snapshot the same follows; without the ability new episodes begin."""
    world = _begun(subject, 8)
    list(_play(world, subject, 10))
    kept = {name: array.copy() for name, array in world.snapshot().items()}
    if not world.spec.can("snapshot"):
        other: Any = subject.make(subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(kept)
        other.begin_anew(_observations(other))
        assert other.scenario_number == world.scenario_number
        list(_play(other, subject, 5))
        return
    first = list(_play(world, subject))
    world.restore(kept)
    for step, again in zip(first, _play(world, subject), strict=True):
        _assert_equal(step, again)


def the_hook_sees_what_ended(subject: Subject) -> None:
    """`before_reset` is called with the finished rows, once in each step in which any ended."""
    world = _begun(subject, 9)
    calls: list[np.ndarray] = []
    world.before_reset = lambda finished: calls.append(finished.copy())
    expected = [step.finished for step in _play(world, subject) if step.finished.any()]
    np.testing.assert_array_equal(np.array(calls), np.array(expected))


def a_row_can_be_drawn(subject: Subject) -> None:
    """A picture [height, width, 3] of bytes, where the world draws."""
    world = _begun(subject, 10)
    if world.spec.can("draw"):
        picture = world.draw(0)
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3


CHECKS: tuple[Callable[[Subject], None], ...] = (
    the_spec_agrees_with_itself,
    the_same_seed_gives_the_same_bits,
    an_episode_begins_from_its_seed_alone,
    observations_lie_in_their_bounds,
    episodes_are_counted_whole,
    only_what_ended_can_be_cut_off,
    a_wrong_action_changes_nothing,
    misuse_is_refused,
    scenarios_are_numbered_and_checked,
    episodes_know_their_scenario,
    masks_leave_a_choice,
    a_snapshot_goes_on_bit_for_bit,
    the_hook_sees_what_ended,
    a_row_can_be_drawn,
)
"""Every law of a world."""


def _observations(world: BatchWorld) -> np.ndarray:
    return np.zeros((world.num_envs, len(world.spec.observation_names)), np.float32)


def _buffers(world: BatchWorld) -> StepBuffers:
    return new_step_buffers(world.num_envs, len(world.spec.observation_names))


def _actions(world: BatchWorld, seed: int) -> RandomAgent:
    return RandomAgent(world.spec, seed)


def _begun(subject: Subject, seed: int) -> BatchWorld:
    """A world with the scenario, reset to `seed`."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    world.reset(seed, _observations(world))
    return world


def _play(
    world: BatchWorld, subject: Subject, steps: int | None = None, *, dirty: bool = False
) -> Iterator[Step]:
    """Steps with random actions that are the same in every call; `dirty` buffers hold rubbish."""
    act, seen = _actions(world, 0), _observations(world)
    buffers = _buffers(world)
    for _ in range(subject.steps if steps is None else steps):
        if dirty:
            buffers.finished[:] = buffers.truncated[:] = True
        episodes = world.step(act(seen), buffers)
        copies: Mapping[str, np.ndarray] = {
            name: array.copy() for name, array in buffers._asdict().items()
        }
        yield Step(**copies, episodes=episodes, running_order=episodes.running_order.copy())


def _assert_equal(one: Step, two: Step) -> None:
    for name in ("rewards", "finished", "truncated", "observations", "running_order"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.episodes.lines == two.episodes.lines


def _assert_raises(kind: type[LabError], call: Callable[..., Any], *given: Any) -> None:
    try:
        call(*given)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised by {call.__name__}")

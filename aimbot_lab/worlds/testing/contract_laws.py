"""What a world promises of its shape, how it refuses, and what it reports of episodes."""

import numpy as np

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN, EpisodeBatch, parse_lines, result_line
from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario, new_observations, seats_of, step_buffers
from aimbot_lab.worlds.registry import spec_faults
from aimbot_lab.worlds.testing.subject import (
    Subject,
    assert_equal,
    assert_raises,
    begun,
    copied,
    play,
    random_actions,
)

EPISODE_ARRAYS = "row", "agent", "order", "scenario", "outcome", "length", "terms"


def the_spec_agrees_with_itself(subject: Subject) -> None:
    """Names, bounds, blocks, targets and abilities fit each other."""
    faults = list(spec_faults(subject.make(1).spec))
    assert not faults, "; ".join(faults)


def a_wrong_action_changes_nothing(subject: Subject) -> None:
    """ActionError for what is no action, after which the world goes on as if nothing was."""
    one, two = begun(subject, 4), begun(subject, 4)
    branches, width = len(one.spec.branches), len(one.spec.branches) + one.spec.continuous
    wrong = np.zeros((seats_of(one), width), np.float32)
    wrong[-1, 0] = one.spec.branches[0] if branches else np.nan
    buffers = step_buffers(one)
    for actions in (wrong, wrong[:, :-1], np.full_like(wrong, np.nan)):
        assert_raises(ActionError, one.step, actions, buffers)
    for step, other in zip(play(one, subject, 20), play(two, subject, 20), strict=True):
        assert_equal(step, other)


def misuse_is_refused(subject: Subject) -> None:
    """LabError for a step before a reset, for buffers of another shape, and for no such seed."""
    world = subject.make(subject.rows)
    world.set_scenario(subject.scenario)
    actions = random_actions(world)(new_observations(world))
    assert_raises(LabError, world.step, actions, step_buffers(world))
    assert_raises(LabError, world.reset, 1.5, new_observations(world))
    assert_raises(LabError, world.reset, 1, new_observations(world)[:-1])
    world.reset(1, new_observations(world))
    short = step_buffers(world)._replace(rewards=np.zeros(seats_of(world) + 1, np.float32))
    assert_raises(LabError, world.step, actions, short)


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
        assert_raises(ConfigurationError, world.set_scenario, scenario)
    assert world.scenario_number == second


def continuous_columns_end_at_their_bounds(subject: Subject) -> None:
    """A number beyond a column's bounds acts as the bound does."""
    one, two = begun(subject, 12), begun(subject, 12)
    if not one.spec.continuous:
        return
    act, seen = random_actions(one), new_observations(one)
    count, (low, high) = len(one.spec.branches), one.spec.action_bounds
    buffers, others = step_buffers(one), step_buffers(two)
    for number in range(min(subject.steps, 50)):
        at, beyond = act(seen), np.zeros_like(high)
        bound = high if number % 2 else low
        ends = np.isfinite(bound)
        at[:, count:][:, ends] = bound[ends]
        beyond[ends] = bound[ends] + (1 if number % 2 else -1) * (1 + np.abs(bound[ends]))
        past = at.copy()
        past[:, count:][:, ends] = beyond[ends]
        assert_equal(copied(buffers, one.step(at, buffers)), copied(others, two.step(past, others)))


def masks_leave_a_choice(subject: Subject) -> None:
    """No branch is masked as a whole, and without the ability nothing is; to ask changes nothing.

    Every mask is written.
    """
    world, unasked = begun(subject, 6), begun(subject, 6)
    masks = np.zeros((seats_of(world), sum(world.spec.branches)), np.bool_)
    pairs = zip(play(world, subject, 50), play(unasked, subject, 50), strict=True)
    for step, other in pairs:
        assert_equal(step, other)
        masks[:] = True
        world.action_masks(masks)
        again = np.zeros_like(masks)
        world.action_masks(again)
        assert (masks == again).all(), "a mask is not written, or changes when it is asked again"
        start = 0
        for size in world.spec.branches:
            assert masks[:, start : start + size].any(axis=1).all(), "a branch has no choice left"
            start += size
        assert world.spec.can("masks") or masks.all()


def a_row_can_be_drawn(subject: Subject) -> None:
    """A picture [height, width, 3] of bytes, where the world draws."""
    world = begun(subject, 10)
    if world.spec.can("draw"):
        picture = world.draw(0)
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3


def episodes_are_counted_whole(subject: Subject) -> None:
    """Lengths and reward terms of an episode are those of its steps; ranks rise; none is lost."""
    world = begun(subject, 2)
    seats = seats_of(world)
    lengths, returns = np.zeros(seats, int), np.zeros(seats)
    ended, ranks = 0, set()
    for step in play(world, subject):
        lengths += 1
        returns += step.rewards
        batch = step.episodes
        found = batch.seats(world.num_envs)
        assert sorted(found.tolist()) == np.flatnonzero(step.finished).tolist()
        for place, seat in enumerate(found.tolist()):
            assert batch.length[place] == lengths[seat], "length is not the number of steps"
            total = batch.returns[place]
            assert np.isclose(total, returns[seat], rtol=1e-4, atol=1e-2), (
                "terms and rewards differ"
            )
            assert batch.order[place] not in ranks, "two episodes have the same rank"
            assert step.running_order[seat] > batch.order[place], "ranks must rise"
            ranks.add(int(batch.order[place]))
            lengths[seat], returns[seat] = 0, 0.0
            ended += 1
    assert ended > 0, f"no episode ended in {subject.steps} steps: give the subject more"


def what_ended_stays_as_it_was(subject: Subject) -> None:
    """Later steps don't write to the columns of episodes that a step gave.

    A training counts them where its next rollout begins.
    """
    world, steps = begun(subject, 2), subject.steps // 2
    given, then = [], []
    for step in play(world, subject, steps):
        given.append(_columns(step.episodes))
        then.append({name: column.copy() for name, column in given[-1].items()})
    for _ in play(world, subject, steps):
        pass
    for columns, copies in zip(given, then, strict=True):
        for name, column in columns.items():
            np.testing.assert_array_equal(column, copies[name], err_msg=name)


def _columns(batch: EpisodeBatch) -> dict[str, np.ndarray]:
    """All that is kept of episodes that ended."""
    own = {name: getattr(batch, name) for name in EPISODE_ARRAYS}
    return {**own, **batch.columns}


def the_agents_of_a_row_end_together(subject: Subject) -> None:
    """All seats of a row finish in the same step, with one outcome each."""
    world = begun(subject, 2)
    for step in play(world, subject):
        by_agent = step.finished.reshape(world.spec.agents, world.num_envs)
        assert (by_agent == by_agent[0]).all(), "agents of a row must finish together"
        assert set(step.episodes.outcome.tolist()) <= {LOSS, DRAW, WIN}
        assert (step.episodes.agent < world.spec.agents).all()
        drawn = step.episodes.drawn.any()
        assert world.spec.has_draws or not drawn, "a draw, which the spec says there is not"


def result_lines_give_the_columns_back(subject: Subject) -> None:
    """Episodes are of targets of the spec, have its columns, and read back from their lines."""
    world = begun(subject, 3)
    for step in play(world, subject):
        batch = step.episodes
        assert batch.terms.shape == (len(batch.cell), len(world.spec.reward_terms))
        assert set(batch.columns) <= set(world.spec.episode_columns)
        assert not batch or set(batch.columns) == set(world.spec.episode_columns)
        told = world.spec.result_columns
        lines = [result_line(batch, place, told) for place in range(len(batch.cell))]
        read = parse_lines(lines, told or ())
        for name, column in read.columns.items():
            np.testing.assert_array_equal(column, batch.columns[name], err_msg=name)
        assert read.cell == batch.cell, "an episode must name its target and difficulty"
        np.testing.assert_array_equal(read.outcome, batch.outcome)
        np.testing.assert_array_equal(read.returns, batch.returns)
        for cell in batch.cell:
            assert cell is not None
            assert cell.difficulty <= world.spec.difficulties[cell.target]


def only_what_ended_can_be_cut_off(subject: Subject) -> None:
    """`truncated` is True only where `finished` is, and both are written in every step."""
    for step in play(begun(subject, 3), subject, dirty=True):
        assert not (step.truncated & ~step.finished).any()
        assert step.finished.any() == bool(step.episodes)


def episodes_know_their_scenario(subject: Subject) -> None:
    """A new scenario holds for episodes that begin after it; running ones keep theirs."""
    world = begun(subject, 5)
    before = world.scenario_number
    begun_before = {int(rank) for step in play(world, subject, 1) for rank in step.running_order}
    after = world.set_scenario(subject.scenario)
    for step in play(world, subject):
        for rank, scenario in zip(step.episodes.order, step.episodes.scenario, strict=True):
            assert scenario == (before if int(rank) in begun_before else after)

"""What a world reports of episodes."""

import numpy as np

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.result_lines import parse_lines, result_line
from aimbot_lab.foundation.world import seats_of
from aimbot_lab.worlds.testing.subject import (
    Subject,
    begun,
    play,
)

EPISODE_ARRAYS = "row", "agent", "order", "scenario", "outcome", "length", "terms"


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

"""What follows from a seed, a snapshot or a recorded episode, and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import RowArrays, WorldReplays
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    columns_of,
    new_observations,
    seats_of,
    step_buffers,
)
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.worlds.registry import type_of
from aimbot_lab.worlds.testing.subject import (
    Step,
    Subject,
    assert_equal,
    assert_raises,
    begun,
    copied,
    play,
    random_actions,
)

EPISODE_ARRAYS = "agent", "order", "scenario", "outcome", "length", "terms"
STEP_ARRAYS = (
    "rewards",
    "finished",
    "truncated",
    "observations",
    "final_observations",
    "running_order",
)
ENOUGH = 12  # episodes that are played again
ENDING = ("agent", "outcome", "length", "terms")  # columns that an episode must end with again
Ending = dict[str, np.ndarray]


def the_same_seed_gives_the_same_bits(subject: Subject) -> None:
    """Two worlds with the same seed and actions are equal in every step."""
    one, two = (list(play(begun(subject, 7), subject)) for _ in range(2))
    for step, other in zip(one, two, strict=True):
        assert_equal(step, other)


def an_episode_begins_from_its_seed_alone(subject: Subject) -> None:
    """How first episodes begin does not depend on how many rows there are, where `paired`."""
    few, many = subject.make(2), subject.make(5)
    if not few.spec.can("paired"):
        return
    seen = []
    for world in (few, many):
        world.set_scenario(subject.scenario)
        observations = new_observations(world)
        world.reset(11, observations)
        seats = np.arange(seats_of(world)).reshape(world.spec.agents, world.num_envs)
        seen.append(observations[seats[:, :2].ravel()])
    np.testing.assert_array_equal(seen[0], seen[1])


def parts_play_as_the_whole(subject: Subject) -> None:
    """Two worlds with the first rows and the others are as one with all of them, where `parts`.

    So are their snapshots, joined, and worlds that go on from other parts of these.
    """
    whole: Any = subject.make(subject.rows)
    if not whole.spec.can("parts"):
        return
    first = subject.rows // 3
    spans = ((0, first), (first, subject.rows))
    parts: list[Any] = [subject.make(end - begin) for begin, end in spans]
    assert_raises(MisuseError, parts[1].place, first + 1, subject.rows)
    assert_raises(MisuseError, parts[1].place, -1, subject.rows)
    for part, (begin, _) in zip(parts, spans, strict=True):
        part.place(begin, subject.rows)
    everything = _played(whole, subject, slice(0, subject.rows))
    for part, span in zip(parts, spans, strict=True):
        rows = slice(*span)
        for step, other in zip(_played(part, subject, rows), everything, strict=True):
            assert_equal(step, _rows_of(other, rows, whole.spec.agents))
    assert_raises(MisuseError, parts[0].place, 0, subject.rows)
    if whole.spec.can("snapshot"):
        _parts_are_kept_as_the_whole(whole, parts, subject)


def _parts_are_kept_as_the_whole(whole: Any, parts: Sequence[Any], subject: Subject) -> None:
    """The snapshots of `parts` make that of `whole`, from which other parts go on."""
    kept = whole.snapshot()
    joined = parts[0].joined([one.snapshot() for one in parts])
    assert list(joined) == list(kept), "other arrays"
    for name, array in kept.items():
        assert joined[name].dtype == array.dtype, f"{name} is of another type"
        np.testing.assert_array_equal(joined[name], array, err_msg=name)
    everything = _stepped(whole, subject, slice(0, subject.rows))
    for span in ((0, subject.rows // 2), (subject.rows // 2, subject.rows)):
        rows, part = slice(*span), subject.make(span[1] - span[0])
        other: Any = part
        other.place(span[0], subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(other.part_of(kept))
        for step, same in zip(_stepped(part, subject, rows), everything, strict=True):
            assert_equal(step, _rows_of(same, rows, whole.spec.agents))


def _played(world: BatchWorld, subject: Subject, rows: slice) -> list[Step]:
    """Steps of the `rows` of `subject` that `world` has, from a reset, by the actions of all."""
    world.set_scenario(subject.scenario)
    world.reset(13, new_observations(world))
    return _stepped(world, subject, rows)


def _stepped(world: BatchWorld, subject: Subject, rows: slice) -> list[Step]:
    """Further steps of them."""
    whole = subject.make(subject.rows)
    act, buffers, width = random_actions(whole), step_buffers(world), new_observations(whole)
    steps: list[Step] = []
    for _ in range(subject.steps):
        actions = act(width).reshape(world.spec.agents, subject.rows, -1)[:, rows]
        episodes = world.step(actions.reshape(len(buffers.rewards), -1), buffers)
        steps.append(copied(buffers, episodes))
    return steps


def _rows_of(step: Step, rows: slice, agents: int) -> Step:
    """What `step` gave in `rows`, which count from 0 then."""
    count = len(step.rewards) // agents
    seats = np.arange(agents * count).reshape(agents, count)[:, rows].ravel()
    ended = step.episodes
    own = np.flatnonzero((ended.row >= rows.start) & (ended.row < rows.stop))
    episodes = ended._replace(
        row=ended.row[own] - rows.start,
        cell=tuple(ended.cell[place] for place in own.tolist()),
        **{name: getattr(ended, name)[own] for name in EPISODE_ARRAYS},
    )
    arrays = {name: getattr(step, name)[seats] for name in STEP_ARRAYS}
    return Step(**arrays, episodes=episodes)


def observations_lie_in_their_bounds(subject: Subject) -> None:
    """Every number of an observation is finite and within what the spec declares."""
    world = begun(subject, 1)
    slack = 1e-3
    for step in play(world, subject):
        for shown in (step.observations, step.final_observations[step.finished]):
            seen = columns_of(shown)
            assert np.isfinite(seen).all(), "an observation is not finite"
            assert (seen >= world.spec.observation_low - slack).all(), "below its lower bound"
            assert (seen <= world.spec.observation_high + slack).all(), "above its upper bound"


def a_snapshot_goes_on_bit_for_bit(subject: Subject) -> None:
    """From a snapshot the same follows; without the ability, where all episodes go on."""
    world = begun(subject, 8)
    list(play(world, subject, 10))
    kept = {name: array.copy() for name, array in world.snapshot().items()}
    if not world.spec.can("snapshot"):
        other: Any = subject.make(subject.rows)
        other.set_scenario(subject.scenario)
        other.restore(kept)
        anew = other.resume_episodes(new_observations(other))
        assert other.scenario_number == world.scenario_number
        for step, again in zip(play(world, subject), play(other, subject), strict=True):
            if not anew.any():
                assert_equal(step, again)
        return
    first = list(play(world, subject))
    world.restore(kept)
    for step, again in zip(first, play(world, subject), strict=True):
        assert_equal(step, again)


def keeping_endings_changes_nothing(subject: Subject) -> None:
    """With `keep_endings` the same follows, and how a row ended can be drawn, where it draws."""
    world, other = begun(subject, 9), begun(subject, 9)
    world.keep_endings = True
    for step, same in zip(play(world, subject), play(other, subject), strict=True):
        assert_equal(step, same)
        if step.episodes and world.spec.can("draw"):
            row = int(step.episodes.row[0])
            assert world.draw(row, ending=True).shape == world.draw(row).shape


@dataclass
class _RecordedEpisode:
    """How a row began, and what was done and seen in it."""

    start: RowArrays
    actions: list[Float32Array] = field(default_factory=list)  # [agents, A] each, as replayed
    steps: list[tuple[Float32Array, Float32Array]] = field(default_factory=list)
    ending: Ending = field(default_factory=dict)


def a_recorded_episode_is_played_again_bit_for_bit(subject: Subject) -> None:
    """From its row as it began and its actions: the same observations, rewards and end."""
    world: Any = begun(subject, 13)
    if not world.spec.can("replay"):
        return
    kind = subject.kind or type_of(world.settings)
    assert kind.replays is not None, "a world with the ability replay needs WorldReplays"
    episodes = _recorded(world, subject, kind.replays)
    assert episodes, f"no episode ended in {subject.steps} steps: give the subject more"
    for episode in episodes:
        _play_again(episode, world, kind, replays=kind.replays)


def _recorded(world: BatchWorld, subject: Subject, replays: WorldReplays) -> list[_RecordedEpisode]:
    """The first episodes that ended in `world`, which was just reset."""
    act, rows, found = random_actions(world), world.num_envs, []
    running = [_begun(world, row, replays) for row in range(rows)]
    for step in play(world, subject):
        given = act(step.observations)
        for row in range(rows):
            made = replays.row_actions(world, row, given).copy()
            _note(running[row], step, made, place=(row, rows))
            if not step.finished[row]:
                continue
            running[row].ending = _ending(step.episodes, row)
            found.append(running[row])
            running[row] = _begun(world, row, replays)
        if len(found) >= ENOUGH:
            break
    return found


def _begun(world: BatchWorld, row: int, replays: WorldReplays) -> _RecordedEpisode:
    start = replays.row_start(world, row)
    assert start is not None, "a row that has just begun must give its start"
    return _RecordedEpisode({name: array.copy() for name, array in start.items()})


def _note(
    episode: _RecordedEpisode, step: Step, actions: Float32Array, *, place: tuple[int, int]
) -> None:
    """Keep what `actions` [agents, A] led to in the row at `place`, its number and that of rows."""
    row, rows = place
    seats = slice(row, None, rows)
    seen = step.final_observations if step.finished[row] else step.observations
    episode.actions.append(actions)
    episode.steps.append((seen[seats].copy(), step.rewards[seats].copy()))


def _ending(batch: EpisodeBatch, row: int) -> Ending:
    """How the episode of `row` ended, for each agent."""
    places = np.flatnonzero(batch.row == row)
    return {name: getattr(batch, name)[places] for name in ENDING}


def _play_again(
    episode: _RecordedEpisode, world: Any, kind: WorldType, *, replays: WorldReplays
) -> None:
    row = replays.replay_row(replays.row_settings(world.settings), episode.start, kind.make)
    buffers = step_buffers(row.world)
    row.beginning()
    last = len(episode.actions) - 1
    for number, (actions, (seen, rewards)) in enumerate(
        zip(episode.actions, episode.steps, strict=True)
    ):
        _, batch = row.decide(actions, buffers)
        assert bool(batch) == (number == last), "the replay ends at another decision"
        found = buffers.final_observations if batch else buffers.observations
        agents = len(rewards)  # a replay may play others as well, such as the opponents
        np.testing.assert_array_equal(found[:agents], seen, err_msg="observations of a replay")
        np.testing.assert_array_equal(
            buffers.rewards[:agents], rewards, err_msg="rewards of a replay"
        )
    for name, values in _ending(batch, 0).items():
        given = episode.ending[name]
        np.testing.assert_array_equal(values[: len(given)], given, err_msg=f"{name} of a replay")

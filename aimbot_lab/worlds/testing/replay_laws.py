"""What a world promises of episodes that are recorded and played again."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import RowArrays, WorldReplays
from aimbot_lab.foundation.world import BatchWorld, Float32Array, step_buffers
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.worlds.registry import type_of
from aimbot_lab.worlds.testing.subject import Step, Subject, begun, play, random_actions

ENOUGH = 12  # episodes that are played again
ENDING = ("agent", "outcome", "length", "terms")  # columns that an episode must end with again
Ending = dict[str, np.ndarray]


@dataclass
class _Episode:
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


def _recorded(world: BatchWorld, subject: Subject, replays: WorldReplays) -> list[_Episode]:
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


def _begun(world: BatchWorld, row: int, replays: WorldReplays) -> _Episode:
    start = replays.row_start(world, row)
    assert start is not None, "a row that has just begun must give its start"
    return _Episode({name: array.copy() for name, array in start.items()})


def _note(episode: _Episode, step: Step, actions: Float32Array, *, place: tuple[int, int]) -> None:
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


def _play_again(episode: _Episode, world: Any, kind: WorldType, *, replays: WorldReplays) -> None:
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

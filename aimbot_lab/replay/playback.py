"""Recorded episodes played again, decision by decision."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import BoolArray, Float32Array, new_step_buffers
from aimbot_lab.replay.episode import About, RecordedEpisode, Replay, ReplayError
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.single_row import solo_arena


@dataclass(frozen=True)
class ReplayStep:
    """An episode after one of its decisions; before the first, where there is no action."""

    state: ArenaState  # of one row; read it before the next moment
    action: Float32Array | None  # [4]
    observation: Float32Array  # [D] after the decision; zeros before the first
    reward: float
    earned: npt.NDArray[np.float64]  # [T] what each reward term gave for this decision
    fired: bool
    hit: int  # index of the enemy that was hit, -1: none
    line: str | None  # the result line, once the episode has ended


def replay_steps(episode: RecordedEpisode) -> Iterator[ReplayStep]:
    """The beginning of `episode` and the moment after each of its decisions.

    Raises ReplayError where it can't be played, or does not end with its last action.
    """
    stage = _ReplayArena(episode)
    yield stage.beginning()
    last = len(episode.actions) - 1
    for number, action in enumerate(episode.actions):
        try:
            step = stage.decide(action)
        except ActionError as error:
            raise ReplayError(f"the replay's action {number} is invalid: {error}") from error
        if (step.line is not None) != (number == last):
            raise _other_end(number, last)
        yield step


class _ReplayArena:
    """The arena in which one episode is played."""

    def __init__(self, episode: RecordedEpisode) -> None:
        try:
            self._arena = solo_arena(episode.settings, episode.start)
        except MisuseError as error:
            raise ReplayError(f"the replay's initial state is invalid: {error}") from error
        self._arena.keep_endings = True
        self._buffers = new_step_buffers(1, len(self._arena.spec.observation_names))

    def beginning(self) -> ReplayStep:
        state = self._arena.state
        nothing = np.zeros(state.terms.shape[1])
        seen = self._buffers.observations[0]
        return ReplayStep(state, None, seen, 0.0, nothing, fired=False, hit=-1, line=None)

    def decide(self, action: Float32Array) -> ReplayStep:
        state, buffers = self._arena.state, self._buffers
        ready, hits_left = state.gun_ticks[0] <= 0, state.enemy_hits_left[0].copy()
        before = state.terms[0].copy()
        batch = self._arena.step(action[None], buffers)
        after = self._arena.ended_state or state
        seen = buffers.final_observations if batch else buffers.observations
        return ReplayStep(
            state=after,
            action=action,
            observation=seen[0],
            reward=float(buffers.rewards[0]),
            earned=after.terms[0] - before,
            fired=bool(ready and action[2] > 0),
            hit=_index(hits_left > after.enemy_hits_left[0]),
            line=result_line(batch, 0) if batch else None,
        )


def _index(marks: BoolArray) -> int:
    return int(marks.argmax()) if marks.any() else -1


def _other_end(number: int, last: int) -> ReplayError:
    return ReplayError(
        f"the replay plays another episode than was recorded: it had {last + 1} decisions, here "
        f"it {'ends after' if number < last else 'goes on after'} {number + 1}"
    )


def trajectory_sha256(episode: RecordedEpisode) -> str:
    """The hash of all that happens: poses, observations, rewards, the result.

    Raises ReplayError where the episode does not end as it was recorded.
    """
    digest = hashlib.sha256()
    for step in replay_steps(episode):
        add_to(digest, step)
        if step.line is not None and step.line != episode.line:
            raise ReplayError(
                "the replay plays another episode than was recorded: it ended with "
                f"{episode.line!r:.120}, here with {step.line!r}"
            )
    return digest.hexdigest()


def add_to(digest: "hashlib._Hash", step: ReplayStep) -> None:
    """Count `step` into the hash of a trajectory."""
    state = step.state
    for array in (state.position, state.yaw, state.enemy_hits_left, state.gun_ticks, state.terms):
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    digest.update(step.observation.astype("<f4", copy=False).tobytes())
    digest.update(np.array(step.reward, "<f8").tobytes())
    digest.update((step.line or "").encode())


def as_replay(episode: RecordedEpisode, about: About) -> Replay:
    """`episode` with its hash, played once. Raises ReplayError where it plays otherwise."""
    return Replay(episode, about, trajectory_sha256(episode))


def verify(replay: Replay) -> None:
    """Raise ReplayError unless `replay` plays to the trajectory that was recorded."""
    found = trajectory_sha256(replay.episode)
    if found != replay.trajectory_sha256:
        raise ReplayError(
            "the replay plays another episode than was recorded (trajectory "
            f"{found[:12]}, recorded {replay.trajectory_sha256[:12]}): it is of another version "
            "of the simulator"
        )

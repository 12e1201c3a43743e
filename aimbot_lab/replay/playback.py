"""Recorded episodes played again, decision by decision."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.replays import ReplayRow, Scene
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import Float32Array, WorldSpec, step_buffers
from aimbot_lab.replay.episode import About, RecordedEpisode, Replay, ReplayError
from aimbot_lab.worlds.registry import make_world


@dataclass(frozen=True)
class ReplayStep:
    """An episode after one of its decisions; before the first, where there is no action."""

    scene: Scene  # read what it is drawn from before the next step
    action: Float32Array | None  # [A] of the first agent
    observations: Float32Array  # [agents, D] after the decision; zeros before the first
    rewards: Float32Array  # [agents]
    earned: npt.NDArray[np.float64]  # [T] what each reward term gave for this decision
    line: str | None  # the result line of the first agent, once the episode has ended


def replay_steps(episode: RecordedEpisode) -> Iterator[ReplayStep]:
    """The beginning of `episode` and the moment after each of its decisions.

    Raises ReplayError where it can't be played, or does not end with its last action.
    """
    try:
        row = episode.world.replay_row(episode.settings, episode.start, make_world)
    except MisuseError as error:
        raise ReplayError(f"the replay's initial state is invalid: {error}") from error
    last = len(episode.actions) - 1
    for number, step in enumerate(_steps(row, episode.actions), -1):
        if number >= 0 and (step.line is not None) != (number == last):
            raise _other_end(number, last)
        yield step


def _steps(row: ReplayRow, actions: Float32Array) -> Iterator[ReplayStep]:
    world, buffers = row.world, step_buffers(row.world)
    scene = row.beginning()
    nothing = np.zeros_like(scene.terms)
    yield ReplayStep(scene, None, buffers.observations, buffers.rewards, nothing, None)
    for number, action in enumerate(actions):
        before = scene.terms
        by_agent = action.reshape(world.spec.agents, -1)
        try:
            scene, batch = row.decide(by_agent, buffers)
        except ActionError as error:
            raise ReplayError(f"the replay's action {number} is invalid: {error}") from error
        yield ReplayStep(
            scene=scene,
            action=by_agent[0],
            observations=buffers.final_observations if batch else buffers.observations,
            rewards=buffers.rewards.copy(),
            earned=scene.terms - before,
            line=_line(world.spec, batch) if batch else None,
        )


def _line(spec: WorldSpec, batch: EpisodeBatch) -> str:
    """The result line of the first agent in `batch`, which is of a single row."""
    return result_line(batch, int(np.flatnonzero(batch.agent == 0)[0]), spec.result_columns)


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
    for array in step.scene.trajectory:
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    digest.update(step.observations.astype("<f4", copy=False).tobytes())
    digest.update(step.rewards.astype("<f8").tobytes())
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

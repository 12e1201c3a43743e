"""A world played as a build of ML-Agents is: agents of behaviors that decide and end."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.argument_checks import whole_seed
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Scenario,
    WorldSpec,
    seats_of,
)
from aimbot_lab.mlagents.actions import ActionTuple
from aimbot_lab.mlagents.alternating_buffers import AlternatingBuffers
from aimbot_lab.mlagents.behaviors import BehaviorSpec, behavior_spec, sensors_of
from aimbot_lab.mlagents.exception import UnityActionException


class Team(NamedTuple):
    """The agents of one behavior: adjacent seats of the world."""

    behavior: str  # `NAME?team=0`
    seats: slice


class Moment(NamedTuple):
    """What all seats have observed; the first three arrays are the caller's to keep."""

    observations: Float32Array  # [N, D] to decide on
    rewards: Float32Array  # [N] of what ended in this step or goes on
    forbidden: BoolArray  # [N, choices of all branches]
    finished: BoolArray  # [N] an episode ended, and the next one has begun
    truncated: BoolArray  # [N] and was cut off
    final_observations: Float32Array  # [N, D] last of the episode; holds where finished
    episodes: EpisodeBatch | None


def even_scenario(spec: WorldSpec) -> Scenario:
    """All targets of a world, drawn evenly."""
    return Scenario(dict.fromkeys(spec.targets, 1.0))


def teams_of(world: BatchWorld, name: str) -> tuple[Team, ...]:
    """A behavior for each of the agents of a row. Raises ConfigurationError for a bad `name`."""
    if not name or not name.isascii() or "?" in name:
        raise ConfigurationError(f"behavior name: must be ASCII without a question mark: {name!a}")
    rows = world.num_envs
    return tuple(
        Team(f"{name}?team={agent}", slice(agent * rows, (agent + 1) * rows))
        for agent in range(world.spec.agents)
    )


class Player:
    """Plays `world`, which has a scenario, by the actions of behaviors.

    Pictures are [C, H, W] with `channels_first`, else [H, W, C].
    """

    def __init__(
        self, world: BatchWorld, *, name: str, seed: int, channels_first: bool = True
    ) -> None:
        from aimbot_lab.mlagents.action_writer import ActionWriter  # loads Numba

        self.teams = teams_of(world, name)
        self.spec: BehaviorSpec = behavior_spec(world.spec, channels_first=channels_first)
        self.sensors = sensors_of(world.spec, channels_first=channels_first)
        self._world, self._seed, self._resets = world, whole_seed(seed), 0
        self._seats = seats_of(world)
        width = len(world.spec.branches) + world.spec.continuous
        self._actions: Float32Array = np.zeros((self._seats, width), np.float32)
        self._writers = [ActionWriter(self._actions[team.seats], world.spec) for team in self.teams]
        self._buffers = AlternatingBuffers(world)
        self._choices, self._masks = sum(world.spec.branches), world.spec.can("masks")

    def reset(self) -> Moment:
        """First observations; the first time those of the seed, then of others that follow it."""
        seed = self._seed
        if self._resets:
            sequence = np.random.SeedSequence([abs(seed), self._resets])
            seed = int(sequence.generate_state(1)[0])
        buffers = self._buffers.turn()
        self._world.reset(seed, buffers.observations)
        buffers.rewards.fill(0.0)
        buffers.finished.fill(False)
        self._resets += 1
        return self._moment(None)

    def step(self, actions: Mapping[str, ActionTuple]) -> Moment:
        """What follows from `actions` of behaviors, zeros where there are none.

        Continuous numbers are clipped to -1 and 1, which stand for the world's bounds. Raises
        UnityActionException, leaving the world as it was, for NaN and choices that there are not.
        """
        for team, writer in zip(self.teams, self._writers, strict=True):
            writer.write(actions.get(team.behavior))
        try:
            episodes = self._world.step(self._actions, self._buffers.turn())
        except ActionError as error:
            raise UnityActionException(f"set_actions: {error}") from error
        return self._moment(episodes)

    def _moment(self, episodes: EpisodeBatch | None) -> Moment:
        buffers = self._buffers.now
        allowed = np.empty((self._seats, self._choices), np.bool_)
        if self._masks:
            self._world.action_masks(allowed)
        else:
            allowed.fill(True)
        return Moment(
            observations=self._buffers.give(),
            rewards=buffers.rewards.copy(),
            forbidden=np.logical_not(allowed, out=allowed),
            finished=buffers.finished,
            truncated=buffers.truncated,
            final_observations=buffers.final_observations,
            episodes=episodes or None,
        )

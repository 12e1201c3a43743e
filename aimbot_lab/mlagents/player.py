"""A world played as a build of ML-Agents is: agents of behaviors that decide and end."""

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import whole_seed
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Observations,
    StepBuffers,
    seats_of,
    step_buffers,
)
from aimbot_lab.mlagents.base_env import ActionTuple, BehaviorSpec, DecisionSteps, TerminalSteps
from aimbot_lab.mlagents.exception import UnityActionException
from aimbot_lab.mlagents.sensors import behavior_spec, sensors_of

Steps = dict[str, tuple[DecisionSteps, TerminalSteps]]
"""By behavior, who decides next and who ended. An agent that ended is in both: with its last step,
and with the first one of its next episode."""


def teams_of(world: BatchWorld, name: str) -> dict[str, slice]:
    """The behaviors `NAME?team=0` and so on, one for each agent of a row, with their seats.

    Raises ConfigurationError for a bad `name`.
    """
    if not name or not name.isascii() or "?" in name:
        raise ConfigurationError(f"behavior name: must be ASCII without a question mark: {name!a}")
    rows = world.num_envs
    return {
        f"{name}?team={agent}": slice(agent * rows, (agent + 1) * rows)
        for agent in range(world.spec.agents)
    }


class BehaviorPlayer:
    """Plays `world`, which has a scenario, by the actions of behaviors.

    Pictures are [C, H, W] with `channels_first`, else [H, W, C]. Continuous numbers go to the world
    as they are with `raw`; else they are clipped to -1 and 1, which stand for its bounds.
    """

    def __init__(
        self,
        world: BatchWorld,
        *,
        name: str,
        seed: int,
        channels_first: bool = True,
        raw: bool = False,
    ) -> None:
        from aimbot_lab.foundation.kernels.scaled_actions import write_actions  # loads Numba

        self.teams = teams_of(world, name)
        self.spec: BehaviorSpec = behavior_spec(world.spec, channels_first=channels_first)
        self.sensors = sensors_of(world.spec, channels_first=channels_first)
        self._world, self._seed, self._resets = world, whole_seed(seed), 0
        self._seats = seats_of(world)
        width = len(world.spec.branches) + world.spec.continuous
        self._actions: Float32Array = np.zeros((self._seats, width), np.float32)
        low, high = world.spec.action_ranges
        low, high = (-np.ones_like(low), np.ones_like(high)) if raw else (low, high)
        self._middle = ((low + high) / 2).astype(np.float32)
        self._half = ((high - low) / 2).astype(np.float32)
        self._limit = np.float32(np.inf if raw else 1.0)
        self._write_actions = write_actions
        self._nothing = self.spec.action_spec.empty_action(world.num_envs)
        self._buffers = AlternatingBuffers(world)
        branches, self._masks = self.spec.action_spec.discrete_branches, world.spec.can("masks")
        ends = np.cumsum(branches, dtype=int).tolist()
        self._choices = [slice(end - size, end) for end, size in zip(ends, branches, strict=True)]
        # A copy of an array at hand takes half the time of a new one, and it is wanted each step.
        self._ids = np.arange(self._seats, dtype=np.int32)

    def reset(self) -> Steps:
        """First steps; the first time those of the seed, then of others that follow it.

        Their arrays, as those of `step`, are the caller's to keep.
        """
        seed = self._seed
        if self._resets:
            sequence = np.random.SeedSequence([abs(seed), self._resets])
            seed = int(sequence.generate_state(1)[0])
        buffers = self._buffers.turn()
        self._world.reset(seed, buffers.observations)
        buffers.rewards.fill(0.0)
        buffers.finished.fill(False)
        self._resets += 1
        return self._steps()

    def step(self, actions: Mapping[str, ActionTuple]) -> tuple[Steps, EpisodeBatch]:
        """What follows from `actions` of behaviors, zeros for the others, and what ended.

        Raises UnityActionException, leaving the world as it was, for NaN and choices that there are
        not.
        """
        for behavior, seats in self.teams.items():
            given = actions.get(behavior, self._nothing)
            self._write_actions(
                given.discrete,
                given.continuous,
                self._middle,
                self._half,
                self._limit,
                self._actions[seats],
            )
        try:
            episodes = self._world.step(self._actions, self._buffers.turn())
        except ActionError as error:
            raise UnityActionException(f"set_actions: {error}") from error
        return self._steps(), episodes

    def _steps(self) -> Steps:
        buffers = self._buffers.now
        forbidden = np.empty((self._seats, sum(self.spec.action_spec.discrete_branches)), np.bool_)
        if self._masks:
            self._world.action_masks(forbidden)  # which says what is allowed
            np.logical_not(forbidden, out=forbidden)
        else:
            forbidden.fill(False)
        given, all_rewards = self._buffers.give(), buffers.rewards.copy()
        steps: Steps = {}
        for behavior, seats in self.teams.items():
            rewards, observations, ids = all_rewards[seats], given[seats], self._ids[seats]
            ended = buffers.finished[seats].nonzero()[0]
            # `take` is twice as fast as an index of places.
            last = buffers.final_observations[seats].take(ended, axis=0)
            terminals = TerminalSteps(
                [sensor.of(last) for sensor in self.sensors],
                rewards.take(ended),
                buffers.truncated[seats].take(ended),
                ids.take(ended),
            )
            rewards[ended] = 0.0  # of the next episode, in which nothing has happened
            masks = [forbidden[seats, choices] for choices in self._choices]
            decisions = DecisionSteps(
                [sensor.of(observations) for sensor in self.sensors],
                rewards,
                ids.copy(),
                masks or None,
            )
            steps[behavior] = decisions, terminals
        return steps


class AlternatingBuffers:
    """Buffers for the steps of `world`, whose observations are given to a trainer.

    What was given never changes: where a trainer still has observations when their arrays would
    be written again, they are left to it, and copies are given from then on. Writing two sets by
    turns is faster than copying, and a world is fastest where it always writes the same ones.
    """

    def __init__(self, world: BatchWorld) -> None:
        self._world = world
        self._pair = [step_buffers(world), step_buffers(world)]
        self._given: list[weakref.ref[Float32Array] | None] = [None, None]
        self._copies = False

    @property
    def now(self) -> StepBuffers:
        """What was written last."""
        return self._pair[0]

    def turn(self) -> StepBuffers:
        """What is to be written next; the trainer has none of it."""
        if self._copies:
            return self._pair[0]
        self._pair.reverse()
        self._given.reverse()
        kept = self._given[0]
        if kept is not None and kept() is not None:
            self._pair[0] = step_buffers(self._world)
            self._copies = True
        return self._pair[0]

    def give(self) -> Observations:
        """The observations [N] written last, for the trainer to keep."""
        observations = self._pair[0].observations
        if observations.dtype.names is not None:
            return observations  # of which each sensor takes copies
        if self._copies:
            return observations.copy()
        # Views of an array refer to it as their base only where that is not a view of an array.
        window: Any = memoryview
        given: Float32Array = np.asarray(window(observations))
        self._given[0] = weakref.ref(given)
        return given

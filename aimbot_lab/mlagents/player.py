"""The player's side: a world behind ML-Agents' socket, with its channels."""

import logging
import math
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from aimbot_lab.foundation.argument_checks import whole_seed
from aimbot_lab.foundation.episodes import EpisodeBatch, result_line
from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError
from aimbot_lab.foundation.settings import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Observations,
    Scenario,
    StepBuffers,
    seats_of,
    step_buffers,
)
from aimbot_lab.mlagents.base_env import ActionTuple, BehaviorSpec, DecisionSteps, TerminalSteps
from aimbot_lab.mlagents.exception import UnityActionException, UnitySideChannelException
from aimbot_lab.mlagents.info_codec import behavior_spec, sensors_of
from aimbot_lab.mlagents.side_channel.engine_configuration_channel import (
    ENGINE_CONFIGURATION,
    EngineConfigurationChannel,
)
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    ENVIRONMENT_PARAMETERS,
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.float_properties_channel import FLOAT_PROPERTIES
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import Message
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS, StatsAggregationMethod

LOG = logging.getLogger(__name__)
TRAINING_ANALYTICS = uuid.UUID("b664a4a9-d86f-5a5f-95cb-e8353a7e8356")
RESULT_FIELDS = 3  # Warning|Result|Win
PREVIEW = 16  # bytes of an unknown message that are shown
_TIME_SCALE = EngineConfigurationChannel.ConfigurationType.TIME_SCALE
_TYPES = EnvironmentParametersChannel.EnvironmentDataTypes
_SAMPLERS = EnvironmentParametersChannel.SamplerTypes


class ReceivedParameters:
    """What the episodes of `world` are drawn from, as parameters come in.

    Parameters `target.NAME` and `difficulty.NAME.K` are weights of targets and difficulties.
    """

    def __init__(self, world: BatchWorld, scenario: Scenario) -> None:
        self._world, self._scenario = world, scenario
        self._weights = weights_of(scenario, world.spec.difficulties)
        world.set_scenario(scenario)

    def receive(self, given: Mapping[str, ParameterValue]) -> tuple[str, ...]:
        """Set those that the world has, together; the names of the others.

        Raises UnitySideChannelException, leaving all as it was, for values that it does not take.
        """
        known = self._world.spec.parameters
        weights = {
            name: float(value)
            for name, value in given.items()
            if name in self._weights and isinstance(value, float | int)
        }
        others = {name: value for name, value in given.items() if name not in weights}
        unknown = tuple(name for name in others if known and name not in known)
        taken = {name: value for name, value in others.items() if name not in unknown}
        if taken or weights:
            self._set(taken, {**self._weights, **weights})
        return unknown

    def _set(self, taken: Mapping[str, ParameterValue], weights: Mapping[str, float]) -> None:
        changed = replace(self._scenario, parameters={**self._scenario.parameters, **taken})
        if weights != self._weights:
            # A target without weight is left out.
            difficulties = self._world.spec.difficulties
            targets = {
                target: weight
                for target in difficulties
                if (weight := weights[_target_parameter(target)])
            }
            difficulty = {
                target: tuple(
                    weights[_difficulty_parameter(target, level)]
                    for level in range(1, difficulties[target] + 1)
                )
                for target in targets
                if difficulties[target]
            }
            changed = replace(changed, targets=targets, difficulty=difficulty)
        try:
            self._world.set_scenario(changed)
        except LabError as error:
            raise UnitySideChannelException(f"environment parameters: {error}") from error
        self._scenario, self._weights = changed, dict(weights)


def weights_of(scenario: Scenario, difficulties: Mapping[str, int]) -> dict[str, float]:
    """Weights of all targets and difficulties by their parameters' names."""
    weights = {}
    for target, levels in difficulties.items():
        weights[_target_parameter(target)] = scenario.targets.get(target, 0.0)
        given = scenario.difficulty.get(target, (1.0,) * levels)
        for level, weight in enumerate(given, start=1):
            weights[_difficulty_parameter(target, level)] = weight
    return weights


def parameters_of(messages: list[Message]) -> dict[str, ParameterValue]:
    """What those of `messages` that are about parameters set, by name; the last one counts."""
    return dict(
        read_parameter(message)
        for channel, message in messages
        if channel == ENVIRONMENT_PARAMETERS
    )


def read_parameter(message: bytes) -> tuple[str, ParameterValue]:
    """The name of a parameter and what it is set to.

    Raises UnitySideChannelException for a sampler that draws nothing and an invalid message.
    """
    read = IncomingMessage(message)
    name, kind = read.read_string(), read.read_int32()
    try:
        if kind == _TYPES.FLOAT:
            value = read.read_float32()
            if value - value != 0.0:
                raise ValueError(f"must be finite (got {value})")
            return name, value
        if kind == _TYPES.SAMPLER:
            return name, _sampler(read, max(read.read_int32(), -1))
        raise ValueError(f"the kind of value {kind} is unknown")
    except ValidationError as error:
        fault = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    except ValueError as error:
        fault = str(error)
    raise UnitySideChannelException(f"environment parameter {name!a:.60}: {fault}")


def _sampler(read: IncomingMessage, seed: int) -> ParameterValue:
    kind = read.read_int32()
    if kind == _SAMPLERS.UNIFORM:
        low, high = read.read_float32(), read.read_float32()
        return Uniform(
            sampler_parameters=UniformParameters(min_value=low, max_value=high, seed=seed)
        )
    if kind == _SAMPLERS.GAUSSIAN:
        mean, spread = read.read_float32(), read.read_float32()
        return Gaussian(sampler_parameters=GaussianParameters(mean=mean, st_dev=spread, seed=seed))
    if kind == _SAMPLERS.MULTIRANGEUNIFORM:
        bounds = read.read_float32_list()
        pairs = tuple(zip(bounds[::2], bounds[1::2], strict=True))
        drawn = MultiRangeUniformParameters(intervals=pairs, seed=seed)
        return MultiRangeUniform(sampler_parameters=drawn)
    raise ValueError(f"the kind of sampler {kind} is unknown")


def _target_parameter(target: str) -> str:
    """The parameter that holds the weight of `target`."""
    return f"target.{target}"


def _difficulty_parameter(target: str, level: int) -> str:
    """The parameter that holds the weight of difficulty `level`, from 1 on, of `target`."""
    return f"difficulty.{target}.{level}"


class PlayerChannels:
    """Carries out what trainers send to `world`, and writes what is sent to them.

    `log` is the id under which lines of text go; None: none do. They end with Win or Lose if
    `plain`.
    """

    def __init__(
        self,
        world: BatchWorld,
        parameters: ReceivedParameters,
        *,
        log: uuid.UUID | None,
        plain: bool = False,
    ) -> None:
        self._spec, self._plain = world.spec, plain
        self._parameters, self._log = parameters, log
        self._quiet = {ENVIRONMENT_PARAMETERS, TRAINING_ANALYTICS, log}
        self._warned: set[object] = set()

    def receive(self, messages: list[Message]) -> None:
        """Set parameters and ignore the rest, each kind with a warning when it first comes.

        Raises UnitySideChannelException for a parameter that the world can't take.
        """
        given = parameters_of(messages)
        unknown = self._parameters.receive(given)
        for name, value in given.items():
            if name not in unknown:
                LOG.info("environment parameter %s: %s", name, value)
        for name in unknown:
            known = ", ".join(self._spec.parameters)
            self._warn(name, f"no environment parameter {name!a}, ignored; there are {known}")
        for channel, message in messages:
            if channel not in self._quiet:
                self._ignore(channel, message)

    def _ignore(self, channel: uuid.UUID, message: bytes) -> None:
        if channel == ENGINE_CONFIGURATION:
            if IncomingMessage(message).read_int32() == _TIME_SCALE:
                self._warn(channel, "the time scale has no effect: worlds step as fast as asked")
        elif channel == FLOAT_PROPERTIES:
            self._warn(channel, "float properties have no effect; use environment parameters")
        else:
            text = message[:PREVIEW].hex(" ")
            self._warn(channel, f"unknown side channel {channel}, ignored; it begins with {text}")

    def _warn(self, what: object, text: str) -> None:
        """Warn of each thing once."""
        if what not in self._warned:
            self._warned.add(what)
            LOG.warning("%s", text)

    def reports(self, episodes: EpisodeBatch, wanted: Iterable[uuid.UUID]) -> list[Message]:
        """What is sent of `episodes` over those channels that are `wanted`."""
        messages: list[Message] = []
        if STATS in wanted:
            messages += [(STATS, stat) for stat in self._stats(episodes)]
        if self._log is not None and self._log in wanted:
            columns = self._spec.result_columns
            for place in range(len(episodes.cell)):
                fields = result_line(episodes, place, columns).split("|")
                line = "|".join(fields[: RESULT_FIELDS if self._plain else None])
                messages.append((self._log, text_message(line)))
        return messages

    def _stats(self, episodes: EpisodeBatch) -> list[bytes]:
        """`Result/Win` as 1 or 0, and the columns of the world, of each episode."""
        named: dict[str, Sequence[float]] = {"Win": episodes.won.astype(float).tolist()}
        named |= {name: values.tolist() for name, values in episodes.columns.items()}
        return [
            stat_message(f"Result/{name}", value)
            for name, values in named.items()
            for value in values
            if math.isfinite(value)
        ]


def reports_over(*, stats: bool, log: uuid.UUID | None) -> tuple[uuid.UUID, ...]:
    """The channels over which results are reported; `log` is that of lines."""
    return (STATS,) * stats + (() if log is None else (log,))


def stat_message(key: str, value: float) -> bytes:
    """A number to be averaged, as the stats channel reads it."""
    message = OutgoingMessage()
    message.write_string(key)
    message.write_float32(value)
    message.write_int32(StatsAggregationMethod.AVERAGE.value)
    return bytes(message.buffer)


def text_message(text: str) -> bytes:
    """A line of text; what is not ASCII is escaped, because trainers refuse it."""
    message = OutgoingMessage()
    message.write_string(text.encode("ascii", "backslashreplace").decode("ascii"))
    return bytes(message.buffer)


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
        from aimbot_lab.foundation.kernels.lanes import write_actions  # loads Numba

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

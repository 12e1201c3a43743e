"""The environment's side of the side channels: parameters that come in, results that go out."""

import logging
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.samplers import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.foundation.world import BatchWorld, Scenario
from aimbot_lab.mlagents.exception import UnitySideChannelException
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

"""Environment parameters as they come over the side channel, and the scenario that they make."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aimbot_lab.foundation.errors import LabError
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
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    ENVIRONMENT_PARAMETERS,
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage

_TYPES = EnvironmentParametersChannel.EnvironmentDataTypes
_SAMPLERS = EnvironmentParametersChannel.SamplerTypes


def read_parameter(message: bytes) -> tuple[str, ParameterValue]:
    """The name of a parameter and what it is set to.

    Raises UnitySideChannelException for a sampler that draws nothing and a message that is none.
    """
    read = IncomingMessage(message)
    name, kind = read.read_string(), read.read_int32()
    try:
        if kind == _TYPES.FLOAT:
            return name, _finite(read.read_float32())
        if kind == _TYPES.SAMPLER:
            return name, _sampler(read, max(read.read_int32(), -1))
        raise ValueError(f"the kind of value {kind} is unknown")
    except ValidationError as error:
        fault = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
    except ValueError as error:
        fault = str(error)
    raise UnitySideChannelException(f"environment parameter {name!a:.60}: {fault}")


def _finite(value: float) -> float:
    if value - value != 0.0:
        raise ValueError(f"must be finite (got {value})")
    return value


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


def target_parameter(target: str) -> str:
    """The parameter that holds the weight of `target`."""
    return f"target.{target}"


def difficulty_parameter(target: str, level: int) -> str:
    """The parameter that holds the weight of difficulty `level`, from 1 on, of `target`."""
    return f"difficulty.{target}.{level}"


class ReceivedParameters:
    """What the episodes of `world` are drawn from, as parameters come in.

    Parameters `target.NAME` and `difficulty.NAME.K` are weights of targets and difficulties.
    """

    def __init__(self, world: BatchWorld, scenario: Scenario) -> None:
        self._world, self._scenario = world, scenario
        self._weights = _weights_of(scenario, world.spec.difficulties)
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
            changed = _weighted(changed, weights, self._world.spec.difficulties)
        try:
            self._world.set_scenario(changed)
        except LabError as error:
            raise UnitySideChannelException(f"environment parameters: {error}") from error
        self._scenario, self._weights = changed, dict(weights)


def _weights_of(scenario: Scenario, difficulties: Mapping[str, int]) -> dict[str, float]:
    """Weights of all targets and difficulties by their parameters' names."""
    weights = {}
    for target, levels in difficulties.items():
        weights[target_parameter(target)] = scenario.targets.get(target, 0.0)
        given = scenario.difficulty.get(target, (1.0,) * levels)
        for level, weight in enumerate(given, start=1):
            weights[difficulty_parameter(target, level)] = weight
    return weights


def _weighted(
    scenario: Scenario, weights: Mapping[str, float], difficulties: Mapping[str, int]
) -> Scenario:
    """`scenario` with other weights; a target without weight is left out."""
    targets = {
        target: weight for target in difficulties if (weight := weights[target_parameter(target)])
    }
    difficulty = {
        target: tuple(
            weights[difficulty_parameter(target, level)]
            for level in range(1, difficulties[target] + 1)
        )
        for target in targets
        if difficulties[target]
    }
    return replace(scenario, targets=targets, difficulty=difficulty)


def parameters_of(messages: list[tuple[uuid.UUID, bytes]]) -> dict[str, Any]:
    """What those of `messages` that are about parameters set, by name; the last one counts."""
    return dict(
        read_parameter(message)
        for channel, message in messages
        if channel == ENVIRONMENT_PARAMETERS
    )

"""What a lesson tells builds over side channels: targets, difficulties, parameters, the engine.

Targets and difficulties are environment parameters too, by names of their own: `target.NAME` is the
weight of a target, `difficulty.NAME.K` that of its difficulty K.
"""

from aimbot_lab.foundation.samplers import Gaussian, MultiRangeUniform, ParameterValue, Uniform
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Scenario, WorldSpec
from aimbot_lab.mlagents.player_channels import difficulty_parameter, target_parameter
from aimbot_lab.mlagents.side_channel.engine_configuration_channel import (
    EngineConfig,
    EngineConfigurationChannel,
)
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.side_channel import framed, take_queued
from aimbot_lab.worlds.unity.settings import UnitySettings


def scenario_message(scenario: Scenario, spec: WorldSpec, *, seed: int) -> bytes:
    """`scenario` as data of side channels; samplers without a seed of their own draw by `seed`."""
    channel = EnvironmentParametersChannel()
    for name, weight in _weights(scenario, spec).items():
        channel.set_float_parameter(name, weight)
    for name, value in scenario.parameters.items():
        _send(channel, name, value, seed=derive_seed(seed, "parameter", name) % 2**31)
    return framed(take_queued([channel]))


def _weights(scenario: Scenario, spec: WorldSpec) -> dict[str, float]:
    """Weights by parameters' names; none for a world of one target without difficulties."""
    if list(spec.difficulties.values()) == [0]:
        return {}
    weights = {}
    for target, levels in spec.difficulties.items():
        weights[target_parameter(target)] = float(scenario.targets.get(target, 0.0))
        given = scenario.difficulty.get(target, (1.0,) * levels)
        for level, weight in enumerate(given, start=1):
            weights[difficulty_parameter(target, level)] = float(weight)
    return weights


def _send(
    channel: EnvironmentParametersChannel, name: str, value: ParameterValue, *, seed: int
) -> None:
    if not isinstance(value, Uniform | Gaussian | MultiRangeUniform):
        channel.set_float_parameter(name, float(value))
        return
    own = value.sampler_parameters.seed
    drawn = seed if own is None else own % 2**31
    if isinstance(value, Uniform):
        low, high = value.sampler_parameters.min_value, value.sampler_parameters.max_value
        channel.set_uniform_sampler_parameters(name, low, high, drawn)
    elif isinstance(value, Gaussian):
        mean, spread = value.sampler_parameters.mean, value.sampler_parameters.st_dev
        channel.set_gaussian_sampler_parameters(name, mean, spread, drawn)
    else:
        intervals = list(value.sampler_parameters.intervals)
        channel.set_multirangeuniform_sampler_parameters(name, intervals, drawn)


def engine_message(settings: UnitySettings) -> bytes:
    """The engine's settings as data of side channels."""
    channel = EngineConfigurationChannel()
    channel.set_configuration(
        EngineConfig(
            settings.width,
            settings.height,
            settings.quality_level,
            settings.time_scale,
            settings.target_frame_rate,
            settings.capture_frame_rate,
        )
    )
    return framed(take_queued([channel]))

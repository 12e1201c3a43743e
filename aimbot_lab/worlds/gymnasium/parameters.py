"""Parameters of an episode: drawn from constants and samplers, and given to the environment."""

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

import gymnasium
import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, blamed
from aimbot_lab.foundation.samplers import Gaussian, MultiRangeUniform, ParameterValue, Uniform
from aimbot_lab.foundation.seeds import derive_seed


def drawn_parameters(
    given: Mapping[str, ParameterValue], seed: int, *, episode: int
) -> dict[str, float]:
    """A value for each parameter in the `episode`-th episode that begins after a reset to `seed`.

    A sampler with a seed of its own draws by that instead.
    """
    return {name: _drawn(name, value, seed, episode) for name, value in given.items()}


def _drawn(name: str, value: ParameterValue, seed: int, episode: int) -> float:
    if isinstance(value, float | int):
        return float(value)
    own = value.sampler_parameters.seed
    random = np.random.default_rng(
        derive_seed(seed if own is None else own, "parameter", name, episode)
    )
    if isinstance(value, Gaussian):
        return float(random.normal(value.sampler_parameters.mean, value.sampler_parameters.st_dev))
    if isinstance(value, Uniform):
        low, high = value.sampler_parameters.min_value, value.sampler_parameters.max_value
    elif isinstance(value, MultiRangeUniform):
        low, high = _interval(value, random)
    else:
        assert_never(value)
    return float(random.uniform(low, high))


def _interval(value: MultiRangeUniform, random: np.random.Generator) -> tuple[float, float]:
    """The interval that is drawn from, each in proportion to its length."""
    intervals = value.sampler_parameters.intervals
    lengths = np.array([high - low for low, high in intervals])
    shares = lengths / lengths.sum() if lengths.sum() > 0 else None
    return intervals[int(random.choice(len(intervals), p=shares))]


def attribute_fault(env: gymnasium.Env[Any, Any], name: str) -> str | None:
    """Why `name` is no number of the unwrapped environment; None where it is one."""
    inner = env.unwrapped
    if _is_number(getattr(inner, name, None)):
        return None
    known = sorted(key for key, value in vars(inner).items() if _is_number(value))
    shown = ", ".join(key for key in known if not key.startswith("_"))
    return f"{type(inner).__name__} has no number of that name (it has {shown})"


def check_attributes(env: gymnasium.Env[Any, Any], names: Iterable[str]) -> None:
    """Raise ConfigurationError for a parameter that is no number of the unwrapped environment."""
    for name in names:
        with blamed(f"parameters.{name}: it raised", ConfigurationError):
            fault = attribute_fault(env, name)
        if fault is not None:
            raise ConfigurationError(f"parameters.{name}: {fault}")


def set_attributes(env: gymnasium.Env[Any, Any], values: Mapping[str, float]) -> None:
    """Set attributes of the unwrapped environment; a whole number stays one.

    Raises ForeignCodeError where it refuses one.
    """
    inner = env.unwrapped
    for name, value in values.items():
        what = f"parameters.{name}: {type(inner).__name__} refuses {value:g}:"
        with blamed(what, ForeignCodeError):
            before = getattr(inner, name)
            whole = isinstance(before, int) and not isinstance(before, bool)
            setattr(inner, name, round(value) if whole else value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)

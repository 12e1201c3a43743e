"""Samplers of environment parameters, as ML-Agents names and shapes them.

A sampler draws a value anew for every episode. With a `seed` of its own it draws the same
values in every run; without one they follow from the seed of the reset.
"""

from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import Field

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Int, Le, dataclass

Seed = Annotated[Int, Ge(0), Le(2**63 - 1)] | None


def _refuse_empty(low: float, high: float) -> None:
    if low > high:
        raise ValueError(f"min_value must not be above max_value (got {low:g} and {high:g})")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UniformParameters:
    """Every value of an interval alike."""

    min_value: Float = 0.0
    """Lowest value."""
    max_value: Float = 1.0
    """Highest value."""
    seed: Seed = None
    """Seed of this sampler alone."""

    def __post_init__(self) -> None:
        _refuse_empty(self.min_value, self.max_value)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GaussianParameters:
    """A normal distribution; draws beyond what the parameter allows are moved to its bound."""

    mean: Float = 1.0
    """Mean."""
    st_dev: Annotated[Float, Ge(0)] = 1.0
    """Standard deviation."""
    seed: Seed = None
    """Seed of this sampler alone."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MultiRangeUniformParameters:
    """Several intervals, one of them drawn in proportion to its length, then uniform in it."""

    intervals: Annotated[tuple[tuple[Float, Float], ...], MinLen(1)] = ((0.0, 1.0),)
    """Pairs of lowest and highest value."""
    seed: Seed = None
    """Seed of this sampler alone."""

    def __post_init__(self) -> None:
        for low, high in self.intervals:
            _refuse_empty(low, high)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Uniform:
    """Draws uniformly from an interval."""

    sampler_type: Literal["uniform"] = "uniform"
    """Kind of sampler."""
    sampler_parameters: UniformParameters = UniformParameters()
    """The interval."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Gaussian:
    """Draws from a normal distribution."""

    sampler_type: Literal["gaussian"] = "gaussian"
    """Kind of sampler."""
    sampler_parameters: GaussianParameters = GaussianParameters()
    """Mean and standard deviation."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MultiRangeUniform:
    """Draws uniformly from several intervals."""

    sampler_type: Literal["multirangeuniform"] = "multirangeuniform"
    """Kind of sampler."""
    sampler_parameters: MultiRangeUniformParameters = MultiRangeUniformParameters()
    """The intervals."""


Sampler = Annotated[Uniform | Gaussian | MultiRangeUniform, Field(discriminator="sampler_type")]
"""Any sampler, told apart by its `sampler_type`."""

ParameterValue = float | Uniform | Gaussian | MultiRangeUniform
"""A parameter's constant value, or what draws it."""


def extremes(value: ParameterValue) -> tuple[float, float]:
    """Lowest and highest value that can be drawn; a Gaussian's are without end."""
    if isinstance(value, Uniform):
        return value.sampler_parameters.min_value, value.sampler_parameters.max_value
    if isinstance(value, MultiRangeUniform):
        intervals = value.sampler_parameters.intervals
        return min(low for low, _ in intervals), max(high for _, high in intervals)
    if isinstance(value, Gaussian):
        spread = value.sampler_parameters.st_dev
        mean = value.sampler_parameters.mean
        return (mean, mean) if spread == 0 else (float("-inf"), float("inf"))
    return value, value

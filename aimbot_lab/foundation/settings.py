"""How settings are declared, as frozen pydantic dataclasses that check themselves; samplers.

    @dataclass(frozen=True, kw_only=True, config=STRICT)
    class GunSettings:
        cooldown: Annotated[Float, Ge(0)] = 0.3
        '''Seconds between two shots.'''

The docstring under a field becomes its description in the JSON Schema. `Float`, `Int` and `Bool`
take numbers as they are: no text, no yes/no for a number, no 1.5 for a whole number.

Samplers of environment parameters have ML-Agents' names and shapes. A sampler draws a value anew
for every episode. With a `seed` of its own it draws the same values in every run; without one they
follow from the seed of the reset.

Where the kinds of samplers are told apart: `worlds.parameters` and `kernels.rng` for worlds with
kernels, `worlds.gymnasium.environments`, `worlds.arena.spec`, `training.plain_scripts`, and
`curriculum.settings` for the YAML.
"""

from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Literal, TypeGuard

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema
from pydantic.dataclasses import dataclass

__all__ = [
    "MAX_DIGITS",
    "STRICT",
    "Bool",
    "Float",
    "Ge",
    "Gt",
    "Int",
    "Le",
    "Lt",
    "dataclass",
    "is_whole",
]

MAX_DIGITS = 18
"""Of a whole number in a file: as many as a signed 64-bit integer surely holds."""


def is_whole(value: object) -> TypeGuard[float]:
    """Whether `value` is a float that means a whole number, such as `5e6`."""
    return isinstance(value, float) and value.is_integer() and abs(value) < 10**MAX_DIGITS


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and not is_whole(value):
        raise ValueError(f"must be a number of at most {MAX_DIGITS} digits (got {value})")
    return int(value) if is_whole(value) else value


STRICT = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

Float = Annotated[float, Strict()]
Int = Annotated[int, Strict(), BeforeValidator(_whole)]
Bool = Annotated[bool, Strict()]


def _none_for_minus_one(seed: object) -> object:
    """ML-Agents writes -1 where a sampler has no seed of its own."""
    return None if type(seed) is int and seed == -1 else seed


Seed = Annotated[
    Annotated[Int, Ge(0), Le(2**63 - 1)] | None,
    BeforeValidator(_none_for_minus_one),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": -1}, {"type": "null"}]}),
]


def _refuse_empty(low: float, high: float) -> None:
    if low > high:
        raise ValueError(f"min_value must not be above max_value (got {low:g} and {high:g})")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UniformParameters:
    """Draws uniformly from an interval."""

    min_value: Float = 0.0
    """Lowest value."""
    max_value: Float = 1.0
    """Highest value."""
    seed: Seed = None
    """Seed of this sampler alone; without one, or with -1, it follows from the run's."""

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
    """Seed of this sampler alone; without one, or with -1, it follows from the run's."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MultiRangeUniformParameters:
    """Several intervals, one of them drawn in proportion to its length, then uniform in it."""

    intervals: Annotated[tuple[tuple[Float, Float], ...], MinLen(1)] = ((0.0, 1.0),)
    """Pairs of lowest and highest value."""
    seed: Seed = None
    """Seed of this sampler alone; without one, or with -1, it follows from the run's."""

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


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ConstantParameters:
    """One value."""

    value: Float = 0.0
    """The value."""
    seed: Seed = None
    """No effect, because nothing is drawn."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Constant:
    """A number, as ML-Agents writes it in the configuration of a run."""

    sampler_type: Literal["constant"] = "constant"
    """Kind of sampler."""
    sampler_parameters: ConstantParameters
    """The number."""


def _number_of_constant(value: object) -> object:
    return value.sampler_parameters.value if isinstance(value, Constant) else value


if TYPE_CHECKING:  # what a value is once it has been read
    Sampler = Uniform | Gaussian | MultiRangeUniform | float
else:
    Sampler = Annotated[
        Uniform | Gaussian | MultiRangeUniform | Constant,
        Field(discriminator="sampler_type"),
        AfterValidator(_number_of_constant),
    ]
    """Any sampler, by its `sampler_type`; a constant one becomes its number."""

ParameterValue = float | Uniform | Gaussian | MultiRangeUniform
"""A parameter's constant value, or what draws it."""


def as_parameter(value: object) -> ParameterValue:
    """`value` with any kind of real number, such as NumPy's, as a float.

    Raises TypeError for what is neither a number nor a sampler.
    """
    if isinstance(value, Uniform | Gaussian | MultiRangeUniform):
        return value
    if not isinstance(value, Real):
        raise TypeError(f"must be a number or a sampler (got {value!r})")
    try:
        return float(value)
    except OverflowError as error:
        raise TypeError("must not be a number beyond a float's range") from error


def intervals_of(value: ParameterValue) -> tuple[tuple[float, float], ...]:
    """The intervals that a sampler draws from evenly; none for a Gaussian and a constant."""
    if isinstance(value, Uniform):
        return ((value.sampler_parameters.min_value, value.sampler_parameters.max_value),)
    return value.sampler_parameters.intervals if isinstance(value, MultiRangeUniform) else ()


def extremes(value: ParameterValue) -> tuple[float, float]:
    """Lowest and highest value that can be drawn; a Gaussian's are without end."""
    if isinstance(value, Uniform | MultiRangeUniform):
        intervals = intervals_of(value)
        return min(low for low, _ in intervals), max(high for _, high in intervals)
    if isinstance(value, Gaussian):
        spread = value.sampler_parameters.st_dev
        mean = value.sampler_parameters.mean
        return (mean, mean) if spread == 0 else (-inf, inf)
    return value, value


KINDS = CONSTANT, UNIFORM, GAUSSIAN, RANGES = (0, 1, 2, 3)

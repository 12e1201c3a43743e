"""ML-Agents' `environment_parameters`, as they stand in a trainer file of its.

A parameter is a number, a sampler, or has lessons of its own: a curriculum. Names, defaults and
limits are those of its Python package, version 1.1.0 (trainers/settings.py).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import MinLen
from pydantic import Discriminator, Tag

from aimbot_lab.curriculum.settings import Name, Parameter, kind_of_parameter
from aimbot_lab.foundation.samplers import Sampler
from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Int, dataclass


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterCriteria:
    """What ends a parameter's lesson, in ML-Agents' words."""

    behavior: Name
    """ML-Agents: whose rewards and steps count. Here there is one agent, whatever its name."""
    measure: Literal["reward", "progress"] = "reward"
    """The mean reward of an episode, or the share of all training steps that are taken."""
    threshold: Float = 0.0
    """Value that the measure must exceed."""
    min_lesson_length: Annotated[Int, Ge(0)] = 0
    """Episodes that the lesson lasts at least; the largest is the number in the mean."""
    signal_smoothing: Bool = True
    """Whether a quarter of the measure before is mixed in."""
    require_reset: Bool = False
    """ML-Agents: break off all episodes. Here the next lesson begins with each row's next one."""

    def __post_init__(self) -> None:
        if self.measure == "progress" and not 0 <= self.threshold < 1:
            raise ValueError(
                f"threshold must be at least 0.0 and less than 1.0 (got {self.threshold})"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterLesson:
    """One value of a parameter, and what ends its time."""

    name: Name
    """What the lesson is called."""
    value: Parameter
    """A number or a sampler."""
    completion_criteria: ParameterCriteria | None = None
    """What ends the lesson; the last one has none, and one that it has is passed over."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ParameterCurriculum:
    """Lessons of one parameter."""

    curriculum: Annotated[tuple[ParameterLesson, ...], MinLen(1)]
    """The lessons in the order in which they are learned."""


def _kind(value: object) -> str | None:
    if isinstance(value, ParameterCurriculum):
        return "curriculum"
    if isinstance(value, Mapping) and "curriculum" in value:
        return "curriculum"
    return kind_of_parameter(value)


EnvironmentParameter = Annotated[
    Annotated[Float, Tag("number")]
    | Annotated[Sampler, Tag("sampler")]
    | Annotated[ParameterCurriculum, Tag("curriculum")],
    Discriminator(
        _kind,
        custom_error_type="environment_parameter_type",
        custom_error_message="must be a number, a sampler or a curriculum",
    ),
]
"""A constant, a sampler, or lessons of its own."""

"""Hyper-parameters that change as a training goes on.

    learning_rate: {schedule: linear, start: 1e-3, end: 1e-4}

A schedule is called as stable-baselines3 calls one, with the share of `total_steps` that is
left; where a training has a goal, `end_fraction` says by when the change is to be over.
"""

from collections.abc import Mapping
from math import cos, pi
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from aimbot_lab.foundation.settings import STRICT, Float, Ge, Gt, Le, dataclass


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Linear:
    """From `start` to `end` in a straight line."""

    schedule: Literal["linear"] = "linear"
    """Kind of schedule."""
    start: Annotated[Float, Ge(0)]
    """Value at the beginning of the training."""
    end: Annotated[Float, Ge(0)]
    """Value once the change is over."""
    end_fraction: Annotated[Float, Gt(0), Le(1)] = 1.0
    """Share of total_steps after which it is over."""

    def __post_init__(self) -> None:
        _refuse_nothing(self.start, self.end)

    def __call__(self, progress_remaining: float) -> float:
        """The value where this share of the training is left."""
        return self.start + (self.end - self.start) * _done(progress_remaining, self.end_fraction)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cosine:
    """From `start` to `end` along half a wave: slow, fast, slow (Loshchilov & Hutter 2017)."""

    schedule: Literal["cosine"] = "cosine"
    """Kind of schedule."""
    start: Annotated[Float, Ge(0)]
    """Value at the beginning of the training."""
    end: Annotated[Float, Ge(0)]
    """Value once the change is over."""
    end_fraction: Annotated[Float, Gt(0), Le(1)] = 1.0
    """Share of total_steps after which it is over."""

    def __post_init__(self) -> None:
        _refuse_nothing(self.start, self.end)

    def __call__(self, progress_remaining: float) -> float:
        """The value where this share of the training is left."""
        done = _done(progress_remaining, self.end_fraction)
        return self.end + (self.start - self.end) * (1.0 + cos(pi * done)) / 2.0


Schedule = Linear | Cosine


def value_at(value: float | Schedule, progress_remaining: float) -> float:
    """What `value` is worth where this share of the training is left."""
    return value(progress_remaining) if isinstance(value, Linear | Cosine) else value


def _done(progress_remaining: float, end_fraction: float) -> float:
    """How much of the change is over, from 0 to 1; the last rollout may end after total_steps."""
    return min((1.0 - progress_remaining) / end_fraction, 1.0)


def _refuse_nothing(start: float, end: float) -> None:
    if start == 0 and end == 0:
        raise ValueError("start must be greater than 0 where end is 0")


def _kind(value: object) -> str | None:
    """Whether `value` wants to be a number or a schedule."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "schedule" if isinstance(value, Mapping | Linear | Cosine) else None


_TOLD_APART = Discriminator(
    _kind,
    custom_error_type="schedule_type",
    custom_error_message="must be a number or a schedule",
)
_Scheduled = Annotated[Schedule, Field(discriminator="schedule"), Tag("schedule")]

Positive = Annotated[Annotated[Float, Gt(0), Tag("number")] | _Scheduled, _TOLD_APART]
"""A number above 0, or a schedule."""
NotNegative = Annotated[Annotated[Float, Ge(0), Tag("number")] | _Scheduled, _TOLD_APART]
"""A number of at least 0, or a schedule."""

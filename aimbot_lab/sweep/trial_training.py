"""One training of a trial: what it is given, what it was worth, and who follows it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_overrides
from aimbot_lab.sweep.settings import SweepFile
from aimbot_lab.sweep.space import Params, override_text, overrides
from aimbot_lab.tracking.data_folder import DataFolder


@dataclass(frozen=True)
class TrialTraining:
    """One training of a trial, and how it is scored."""

    sweep: SweepFile
    base: LoadedCurriculum
    params: Params
    seed: int
    evaluation_seed: int
    episodes: int
    name: str  # of its run
    tags: Mapping[str, str]
    data_folder: DataFolder
    tracking_uri: str | None = None
    key: str | None = None  # to find what is left of it after a stop or a death

    def curriculum(self) -> LoadedCurriculum:
        """What is trained. It is tracked where the sweep is: MLflow nests no run below one of
        another experiment."""
        where = asdict(self.sweep.tracking).items()
        tracking = [override_text(f"tracking.{key}", value) for key, value in where]
        given = [*overrides(self.params, self.sweep.search), f"seed={self.seed}", *tracking]
        return with_overrides(self.base, given)


@dataclass(frozen=True)
class TrialScore:
    """What one training was worth."""

    seed: int
    value: float
    steps: int
    seconds: float
    censored: bool = False  # the steps were spent before the goal: the value is a lower bound
    episodes: int = 0
    wins: int = 0
    cells: Mapping[str, float] = field(default_factory=dict)  # win rate by target and difficulty
    run_id: str | None = None
    state_sha256: str | None = None  # of all that was learned

    def as_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {**asdict(self), "cells": dict(self.cells)}


class TrainingMonitor(Protocol):
    """Someone who follows a training, and may end it."""

    def should_stop(self) -> bool:
        """Whether it is to be interrupted now."""

    def at(self, step: int, steps: int, win_rate: float | None) -> None:
        """It has taken `step` of `steps`."""

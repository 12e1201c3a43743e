"""Which of many runs are meant: filters of the form KEY=VALUE, and runs that belong to a sweep."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.runs.run_summary import RunSummary

PARENT = "mlflow.parentRunId"
SWEEP = "lab.sweep"
SWEEP_STAGE = "lab.sweep_stage"  # of the trainings of a sweep
OWN_TRAINING = f"tags.`{PARENT}` IS NULL AND tags.`{SWEEP}` IS NULL"
"""`is_own_training` as a filter of MLflow's."""
ATTRIBUTES = ("name", "experiment", "status")


class RunFilter(NamedTuple):
    """What a run must have: `name`, `experiment` or `status`, else the tag `key`, as `value`.

    `value` may hold `*` for any letters; a run without such a tag has none.
    """

    key: str
    value: str

    def takes(self, run: RunSummary) -> bool:
        """Whether `run` is meant."""
        found = getattr(run, self.key) if self.key in ATTRIBUTES else run.tags.get(self.key)
        if found is None:
            return False
        if self.key == "status":
            return fnmatchcase(str(found), self.value.upper())
        return fnmatchcase(str(found), self.value)


def parse_filter(text: str) -> RunFilter:
    """The filter `KEY=VALUE`. Raises ConfigurationError if it is invalid."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value:
        raise ConfigurationError(
            f"--filter {text!r}: must be KEY=VALUE, KEY one of {', '.join(ATTRIBUTES)} or a tag, "
            "for example name=walker* or lab.seed=2"
        )
    return RunFilter(key.strip(), value)


def is_part_of_sweep(run: RunSummary) -> bool:
    """Whether a sweep made `run` for one of its trials."""
    return PARENT in run.tags


def is_own_training(run: RunSummary) -> bool:
    """Whether `run` is a training that is no part of a sweep, nor the sweep itself."""
    return not is_part_of_sweep(run) and SWEEP not in run.tags


def is_training(run: RunSummary) -> bool:
    """Whether `run` has trained: a sweep and its trials only have runs below them that did."""
    return SWEEP not in run.tags or SWEEP_STAGE in run.tags


def selected(
    runs: Sequence[RunSummary], filters: Sequence[str], *, with_trials: bool
) -> list[RunSummary]:
    """Those of `runs` that every filter takes; runs of a sweep's trials only where asked for.

    Raises ConfigurationError for an invalid filter.
    """
    parsed = [parse_filter(text) for text in filters]
    return [
        run
        for run in runs
        if all(one.takes(run) for one in parsed) and (with_trials or not is_part_of_sweep(run))
    ]

"""Which settings of runs differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aimbot_lab.experiment.config.own_files import plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.tracking.runs.run_summary import RunSummary

MISSING = "-"
FROM_TAGS = {"version": "lab.version", "code": "lab.code", "git commit": "lab.git_commit"}


def flat_settings(values: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting under its whole key: lists of numbers in one, other lists by index."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flat_settings(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(values, list | tuple) and not all(isinstance(v, int | float) for v in values):
        for index, value in enumerate(values):
            yield from flat_settings(value, f"{prefix}.{index}")
    elif isinstance(values, list | tuple):
        yield prefix, " ".join(f"{value:g}" for value in values)
    else:
        yield prefix, str(values)


def settings_that_differ(
    runs: Sequence[tuple[RunSummary, CurriculumFile]],
) -> dict[str, tuple[str, ...]]:
    """The value of each run for every key in which not all agree; "-" where one has no such key.

    Of version, code and commit only what all runs say.
    """
    said = [name for name, tag in FROM_TAGS.items() if all(tag in run.tags for run, _ in runs)]
    each = [
        {
            **{name: run.tags[FROM_TAGS[name]] for name in said},
            **dict(flat_settings(plain_settings(config))),
        }
        for run, config in runs
    ]
    keys = dict.fromkeys(key for settings in each for key in settings)
    rows = {key: tuple(settings.get(key, MISSING) for settings in each) for key in keys}
    return {key: values for key, values in rows.items() if len(set(values)) > 1}

"""The training that a run's id means: a sweep and its trials trained nothing themselves."""

from collections.abc import Sequence

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import MAX_RUNS, find_run, list_runs
from aimbot_lab.tracking.runs.run_summary import RunSummary
from aimbot_lab.tracking.runs.selection import PARENT, is_training

MAX_NAMED = 3  # trainings named in an error
SHORT_ID = 8


def find_training(
    run: str, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> RunSummary:
    """The one training whose id begins with `run`, or the "latest".

    Raises ConfigurationError where no single run is meant, and for the run of a sweep or of a
    trial, naming the trainings below it.
    """
    found = find_run(data_folder, run, tracking_uri=tracking_uri)
    if is_training(found):
        return found
    every = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
    raise ConfigurationError(_trained_nothing(found, trainings_below(found, every)))


def trainings_below(run: RunSummary, runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The trainings among `runs` that lie below `run` or below its trials, by their names."""
    parents = {run.run_id, *(one.run_id for one in runs if one.tags.get(PARENT) == run.run_id)}
    below = [one for one in runs if one.tags.get(PARENT) in parents and is_training(one)]
    return sorted(below, key=lambda one: (one.name, one.run_id))


def _trained_nothing(run: RunSummary, below: Sequence[RunSummary]) -> str:
    kind = "a sweep's trial" if PARENT in run.tags else "a sweep"
    named = [f"{one.run_id[:SHORT_ID]} ({one.name})" for one in below[:MAX_NAMED]]
    more = f" and {len(below) - MAX_NAMED} more" if len(below) > MAX_NAMED else ""
    way = f"name a training below it: {', '.join(named)}{more}" if named else "it has none yet"
    return (
        f"run {run.run_id[:SHORT_ID]} ({run.name}) is {kind} and trained nothing itself; {way}; "
        "aimbot-lab runs --all lists them"
    )

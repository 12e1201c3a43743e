"""Why the lessons of a tracked run ended or did not, from the episodes that it recorded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aimbot_lab.curriculum.progress import EPISODES_NAME, EVENTS_NAME, KeptRecord, read_record
from aimbot_lab.curriculum.reports import Check
from aimbot_lab.curriculum.rule_replay import RecordedRun, Replayed, RuleReplay, replays
from aimbot_lab.experiment.runs.agents import find_training
from aimbot_lab.experiment.runs.run_record import close_orphan_runs, stored_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError
from aimbot_lab.foundation.files import read_start
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact
from aimbot_lab.tracking.journal import growing_file
from aimbot_lab.tracking.tracker import RunSummary
from aimbot_lab.worlds.registry import seats_in, spec_of

MAX_CHECKS = 12  # of a lesson that are shown


@dataclass(frozen=True)
class Explanation:
    """A run's lessons, each with its checks."""

    run_id: str
    name: str
    world: RecordedRun
    replayed: tuple[Replayed, ...]
    has_lessons: bool = True  # else all steps are one, which asks for nothing


def explain_run(
    run: str,
    data_folder: DataFolder,
    *,
    tracking_uri: str | None = None,
    threshold: float | None = None,
) -> Explanation:
    """The lessons of the one run that begins with `run`, which may still be running.

    Raises ConfigurationError where no single training is meant or no lesson takes `threshold`,
    LabError where the run kept no record or a damaged one.
    """
    close_orphan_runs(data_folder)
    found = find_training(run, data_folder, tracking_uri=tracking_uri)
    run_id = found.run_id

    def fetch(name: str) -> Path:
        return download_artifact(data_folder, run_id, name=name, tracking_uri=tracking_uri)

    config = stored_curriculum(fetch).config
    world = RecordedRun(
        config.lessons,
        spec_of(config.learned_env).difficulties,
        seats_in(config.learned_env),
        config.train.total_steps,
    )
    record = _record(found, data_folder.run_folder(run_id), fetch)
    with np.errstate(all="ignore"):  # returns may be as large as floats are
        replayed = tuple(replays(record, world, threshold=threshold))
    refusals = [one.refused for one in replayed if one.refused]
    if refusals and not any(one.other for one in replayed):
        raise ConfigurationError(f"--threshold {threshold:g}: {refusals[0]}")
    return Explanation(run_id, config.name, world, replayed, config.has_lessons)


def _record(run: RunSummary, run_folder: Path, fetch: Callable[[str], Path]) -> KeptRecord:
    texts = [_text(name, run_folder, fetch) for name in (EPISODES_NAME, EVENTS_NAME)]
    if any(texts):
        return read_record(*texts)
    subject = f"run {run.run_id[:8]} ({run.name})"
    if run.status == "RUNNING":
        raise LabError(
            f"{subject} has counted no episode so far: explain it once the first ones have ended"
        )
    raise LabError(
        f"{subject} ended before an episode was counted: no evidence why a lesson ended "
        "or did not; one that begins in a lesson counts once all that began before it have ended"
    )


def _text(name: str, run_folder: Path, fetch: Callable[[str], Path]) -> str:
    """What the run has kept under `name`, where it runs or where it was delivered."""
    growing = growing_file(run_folder, name)
    try:
        path = growing if growing.exists() else fetch(name)
        return read_start(path).decode("utf-8", "replace")
    except (OSError, StoreError):
        return ""


def informative_checks(replay: RuleReplay) -> tuple[Check, ...]:
    """About MAX_CHECKS of the checks at most: those that show how a lesson went.

    The first and the last, those on both sides of each crossing of the bound (the first and the
    last few, where there are many), and some between, evenly.
    """
    checks = replay.checks
    if len(checks) <= MAX_CHECKS:
        return checks
    crossings = [
        place
        for place in range(1, len(checks))
        if replay.reached(checks[place]) != replay.reached(checks[place - 1])
    ]
    near = {place - back for place in (*crossings[:2], *crossings[-1:]) for back in (0, 1)}
    spread = max(MAX_CHECKS - len(near) - 2, 0)
    evenly = {len(checks) * part // (spread + 1) for part in range(1, spread + 1)}
    return tuple(checks[place] for place in sorted({0, len(checks) - 1, *near, *evenly}))


def disagreements(explanation: Explanation) -> Iterator[int]:
    """Numbers of the attempts that a replay ends elsewhere than the run did: records have a gap."""
    for number, replayed in enumerate(explanation.replayed):
        if replayed.own is not None and not replayed.own.agrees:
            yield number

"""A sweep's own run while it runs: the best so far by trial, and the note."""

from aimbot_lab.sweep.metric_names import BEST_SO_FAR
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.results.note import note
from aimbot_lab.sweep.results.report import SweepReport, TrialReport
from aimbot_lab.tracking.tracker import Tracker

CHARTED = "charted"  # attribute of a study: how many of its first trials the chart has


class Chart:
    """Keeps the run's chart and note up to date."""

    def __init__(self, record: SweepRecord, parent: Tracker) -> None:
        self._record, self._parent = record, parent
        self._noted: str | None = None

    def draw(self, now: SweepReport) -> None:
        """A point for each trial that has ended, in the order of their numbers; a new note."""
        for number, best in self._new_points(now):
            self._parent.log_metrics(number, {BEST_SO_FAR: best})
        text = note(now)
        if text != self._noted:
            self._noted = text
            self._parent.set_note(text)

    def _new_points(self, now: SweepReport) -> list[tuple[int, float]]:
        record = self._record
        with record.storage.alone(record.name):  # several coordinators may share a run
            before = int(record.study.user_attrs.get(CHARTED, 0))
            ended = _ended_in_order(now)
            if len(ended) > before:
                record.study.set_user_attr(CHARTED, len(ended))
        points = best_so_far(ended, maximizes=now.maximizes)
        return [(number, best) for number, best in points if number >= before]


def best_so_far(trials: list[TrialReport], *, maximizes: bool) -> list[tuple[int, float]]:
    """The best value among the trials up to each, once there is one."""
    points, best = [], None
    for trial in trials:
        if trial.state == "done" and trial.value is not None:
            better = max if maximizes else min
            best = trial.value if best is None else better(best, trial.value)
        if best is not None:
            points.append((trial.number, best))
    return points


def _ended_in_order(now: SweepReport) -> list[TrialReport]:
    """The trials from the first to the last before one that has not ended."""
    found = []
    for trial in now.trials:
        if trial.state in ("running", "waiting"):
            break
        found.append(trial)
    return found

"""The sweeps of a data folder, read as `aimbot-lab sweep report` reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import never
from aimbot_lab.panel.server.loading import SWEEPS, Loader
from aimbot_lab.tracking.data_folder import DataFolder

if TYPE_CHECKING:
    from aimbot_lab.sweep.record import SweepRecord
    from aimbot_lab.sweep.report import SweepReport, TrialReport

MAX_SWEEPS = 100
OF_TRIALS = ("number", "state", "value", "lower", "upper", "at_least", "seconds", "reason")
OF_CONFIRMED = ("value", "lower", "upper", "gain", "gain_lower", "gain_upper")
MAX_TRIALS = 2000  # that are shown of one, the newest


@dataclass(frozen=True)
class SweepLine:
    """A sweep as the page lists it."""

    name: str
    changed_ms: int  # when its file was written last, since 1970


class Sweeps:
    """Those that were begun here; one that is kept on a server is not among them."""

    def __init__(self, data_folder: DataFolder, loader: Loader) -> None:
        self._loader = loader
        self._data_folder = data_folder
        self._records: dict[str, SweepRecord] = {}

    def look(self) -> list[SweepLine]:
        """All of them, the one that changed last first."""
        lines = [SweepLine(name, changed_ms(path)) for name, path in self._files().items()]
        return sorted(lines, key=lambda line: -line.changed_ms)[:MAX_SWEEPS]

    def report(self, name: str) -> dict[str, Any]:
        """A sweep as it stands. Raises LabError where there is none such, or it can't be read."""
        self._loader.need(*SWEEPS)
        from aimbot_lab.sweep.report import report
        from aimbot_lab.sweep.storage import storage_error

        try:
            record = self._record(name)
            return _document(report(record), record.parent_run)
        except Exception as error:
            self._records.pop(name, None)
            failed = error if isinstance(error, LabError) else storage_error(error)
            if failed is None:
                raise
            raise failed from error

    def _record(self, name: str) -> "SweepRecord":
        from aimbot_lab.sweep.record import find_record

        if name not in self._files():
            raise ConfigurationError("there is no such sweep in this data folder any more")
        if name not in self._records:
            self._records[name] = find_record(self._data_folder, name, None, may_run=never)
        return self._records[name]

    def _files(self) -> Mapping[str, Path]:
        files = (self._data_folder.root / "sweeps").glob("*/study.db")
        return {path.parent.name: path for path in files}


def changed_ms(path: Path) -> int:
    """When a SQLite file was written last, since 1970; 0: it is not there."""
    newest = 0
    for file in (path, path.with_name(path.name + "-wal")):  # where SQLite writes first
        try:
            newest = max(newest, file.stat().st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return newest


def _document(report: "SweepReport", parent_run: str | None) -> dict[str, Any]:
    from aimbot_lab.sweep.report import verdict

    trials = report.trials[-MAX_TRIALS:]
    keys = list(dict.fromkeys(key for trial in trials for key in trial.params))
    return {
        "name": report.name,
        "measure": report.measure,
        "maximizes": report.maximizes,
        "status": report.status,
        "total": report.total,
        "ended": report.ended,
        "best": report.best,
        "verdict": verdict(report),
        "parent_run": parent_run,
        "keys": keys,
        "trials": [_trial(trial, keys) for trial in trials],
        "confirmed": [
            {"label": one.label, **{key: getattr(one, key) for key in OF_CONFIRMED}}
            for one in report.confirmed
        ],
    }


def _trial(trial: "TrialReport", keys: Sequence[str]) -> dict[str, Any]:
    shown = {key: getattr(trial, key) for key in OF_TRIALS}
    return {**shown, "values": [trial.params.get(key) for key in keys]}

"""The best values as a curriculum that runs as it is."""

from pathlib import Path

from aimbot_lab.experiment.config.document import with_overrides
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.results.report import SweepReport
from aimbot_lab.sweep.search.space import overrides
from aimbot_lab.tracking.durable import replace_file

BEST_FILE = "best.yaml"


def best_text(record: SweepRecord, report: SweepReport) -> str | None:
    """The curriculum with the best trial's values, None where no trial has a value.

    It refers to the files of the sweep's own curriculum.
    """
    best = report.best_trial
    if best is None:
        return None
    given = overrides(best.params, record.config.search)
    loaded = with_overrides(record.base, given)
    confirmed = next((one for one in report.confirmed if one.number == best.number), None)
    lines = [
        f"# Best of sweep {record.name}: trial {best.number} of {report.total}. "
        f"{report.measure} {_shown(best.value, at_least=best.at_least)} in the search"
        + (
            f", {_shown(confirmed.value, at_least=confirmed.censored > 0)} on fresh seeds."
            if confirmed
            else "."
        ),
        *(f"# NOT confirmed on fresh seeds: {one_line(one.line)}" for one in report.unconfirmed),
        "# " + ", ".join(given),
    ]
    return "\n".join([*lines, loaded.resolved_text])


def write_best(record: SweepRecord, report: SweepReport, folder: Path) -> Path | None:
    """The file `best.yaml` in `folder`, whole or not at all; None where there is no best trial."""
    text = best_text(record, report)
    if text is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**record.base.files, BEST_FILE: text}.items():
        replace_file(folder / name, content.encode())
        (folder / name).chmod(0o644)
    return folder / BEST_FILE


def _shown(value: float | None, *, at_least: bool) -> str:
    return "-" if value is None else ("> " if at_least else "") + f"{value:.6g}"

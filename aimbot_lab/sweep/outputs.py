"""What a sweep leaves beside its trials: chart and note of its run, best values as a file."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
import optuna
from optuna.trial import TrialState
from optuna.visualization import matplotlib as pictures

from aimbot_lab.experiment.config.document import with_overrides
from aimbot_lab.experiment.runs.result import markdown_table
from aimbot_lab.foundation.shown_text import markdown_text, one_line
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.report import Confirmed, SweepReport, TrialReport, verdict
from aimbot_lab.sweep.settings import BEST_SO_FAR
from aimbot_lab.sweep.space import overrides
from aimbot_lab.tracking.durable import replace_file
from aimbot_lab.tracking.tracker import Tracker

HEAD = ("trial", "in the search", "on fresh seeds", "95 %", "over the defaults", "95 % together")
MAX_TRIALS = 20  # the best of them; a tag holds no more than some thousand characters

CHARTED = "charted"  # attribute of a study: how many of its first trials the chart has

BEST_FILE = "best.yaml"


def note(report: SweepReport) -> str:
    """The best values, and the best few on fresh seeds."""
    best = report.best_trial
    parts = [f"{report.ended} of {report.total} trials ended; scored by {report.measure}."]
    if best is not None:
        values = ", ".join(
            markdown_text(f"{key}={_value(value)}") for key, value in best.params.items()
        )
        where = "; `best.yaml` has them." if report.status == "done" else ", so far."
        parts.append(f"**Best: trial {best.number}**, {values}{where}")
    found = verdict(report)
    if found is not None:
        parts.append(f"**{found[0].upper()}{found[1:]}.**")
    parts += [f"**NOT confirmed: {markdown_text(one.line)}**" for one in report.unconfirmed]
    if report.confirmed:
        parts += [
            "### The best again, on fresh seeds",
            markdown_table(HEAD, [_row(one) for one in report.confirmed]),
            "The best of many is also the luckiest: what counts is the value on fresh seeds.",
        ]
    if report.trials:
        parts += ["### Trials, the best first", _trials(report)]
    return "\n\n".join(parts)


def _trials(report: SweepReport) -> str:
    sign = -1 if report.maximizes else 1
    ended = [t for t in report.trials if t.state not in ("running", "waiting")]
    ended.sort(key=lambda t: (t.state != "done", sign * (t.value or 0.0), t.number))
    keys = list(report.trials[0].params)
    names = (markdown_text(key.rpartition(".")[2]) for key in keys)
    head = ("trial", *names, report.measure, "state")
    return markdown_table(head, [_trial_row(trial, keys) for trial in ended[:MAX_TRIALS]])


def _trial_row(trial: TrialReport, keys: list[str]) -> tuple[str, ...]:
    cells = [markdown_text(_value(trial.params[key])) for key in keys]
    more = "> " if trial.at_least else ""
    return str(trial.number), *cells, more + _shown(trial.value), trial.state


def _row(one: Confirmed) -> tuple[str, ...]:
    return (
        one.label,
        ("> " if one.searched_at_least else "") + _shown(one.searched),
        ("> " if one.censored else "") + _shown(one.value),
        _interval(one.lower, one.upper),
        _shown(one.gain),
        _interval(one.gain_lower, one.gain_upper),
    )


def _value(value: object) -> str:
    """A searched value as a person reads it; `best.yaml` has it exactly."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _interval(lower: float | None, upper: float | None) -> str:
    return "-" if lower is None else f"{_shown(lower)} to {_shown(upper)}"


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
            # Up to the first that has not ended.
            ended = []
            for trial in now.trials:
                if trial.state in ("running", "waiting"):
                    break
                ended.append(trial)
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
        f"{report.measure} {_shown_values(best.value, at_least=best.at_least)} in the search"
        + (
            f", {_shown_values(confirmed.value, at_least=confirmed.censored > 0)} on fresh seeds."
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


def _shown_values(value: float | None, *, at_least: bool) -> str:
    return "-" if value is None else ("> " if at_least else "") + f"{value:.6g}"


MIN_TRIALS = 2
PICTURES: Mapping[str, Callable[[optuna.Study], Any]] = MappingProxyType(
    {
        "history": pictures.plot_optimization_history,
        "importances": pictures.plot_param_importances,
        "slices": pictures.plot_slice,
        "parallel_coordinates": pictures.plot_parallel_coordinate,
    }
)


def draw_plots(study: optuna.Study, folder: Path) -> Iterator[Path]:
    """PNG files in `folder`, of those pictures that the study's trials allow."""
    matplotlib.use("Agg")
    complete = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
    if len({trial.value for trial in complete}) < MIN_TRIALS:
        return
    for name, draw in PICTURES.items():
        path = folder / f"{name}.png"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # these pictures are experimental in Optuna
            drawn = draw(study)
            from matplotlib import pyplot

            axes = drawn.flat[0] if hasattr(drawn, "flat") else drawn
            axes.figure.set_size_inches(10, 6)
            axes.figure.savefig(path, dpi=100, bbox_inches="tight")
            pyplot.close(axes.figure)
        yield path

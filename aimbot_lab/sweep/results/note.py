"""A sweep in Markdown, as the note on its run's page in the tracking UI."""

from aimbot_lab.experiment.runs.result import markdown_table
from aimbot_lab.foundation.shown_text import markdown_text
from aimbot_lab.sweep.results.report import Confirmed, SweepReport, TrialReport, verdict

HEAD = ("trial", "in the search", "on fresh seeds", "95 %", "over the defaults", "95 % together")
MAX_TRIALS = 20  # the best of them; a tag holds no more than some thousand characters


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

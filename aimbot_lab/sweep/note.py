"""A sweep in Markdown, as the note on its run's page in the tracking UI."""

from aimbot_lab.experiment.note import markdown_table
from aimbot_lab.foundation.shown_text import markdown_text
from aimbot_lab.sweep.report import Confirmed, SweepReport

HEAD = ("trial", "in the search", "on fresh seeds", "95 %", "over the defaults", "95 %")


def note(report: SweepReport) -> str:
    """The best values, and the best few on fresh seeds."""
    best = report.best_trial
    parts = [f"{report.ended} of {report.total} trials ended; scored by {report.measure}."]
    if best is not None:
        values = ", ".join(markdown_text(f"{key}={value!r}") for key, value in best.params.items())
        parts.append(f"**Best: trial {best.number}**, {values}; `best.yaml` has them.")
    if report.confirmed:
        parts += [
            "### The best once more, on fresh seeds",
            markdown_table(HEAD, [_row(one) for one in report.confirmed]),
            "The best of many is also the luckiest: what counts is the value on fresh seeds.",
        ]
    return "\n\n".join(parts)


def _row(one: Confirmed) -> tuple[str, ...]:
    name = f"{one.number} (defaults)" if one.is_default else str(one.number)
    return (
        name,
        _shown(one.searched),
        _shown(one.value),
        _interval(one.lower, one.upper),
        _shown(one.gain),
        _interval(one.gain_lower, one.gain_upper),
    )


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _interval(lower: float | None, upper: float | None) -> str:
    return "-" if lower is None else f"{_shown(lower)} to {_shown(upper)}"

"""A sweep in tables of plain text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aimbot_lab.cli.text import duration, table
from aimbot_lab.foundation.shown_text import shown_difference, shown_rate

MANY = 1000  # from here on a value is a count of steps, not a rate

if TYPE_CHECKING:
    from aimbot_lab.sweep.coordinator import SweepSnapshot
    from aimbot_lab.sweep.report import Confirmed, SweepReport, TrialReport


def report_text(report: "SweepReport") -> str:
    """All trials, and the best once more on fresh seeds."""
    from aimbot_lab.sweep.report import verdict

    keys = list(report.trials[0].params) if report.trials else []
    short = short_names(keys)
    head = ("trial", *short, f"{report.measure} [95 %]", "took", "state")
    rows = [(*_row(trial, keys),) for trial in report.trials]
    parts = [headline(report), table(head, rows)]
    if report.confirmed:
        parts.append(_confirmed(report.confirmed, keys))
        found = verdict(report)
        if found is not None:
            parts.append(found)
    if report.unconfirmed:
        parts.append("\n".join(_not_confirmed(report)))
    return "\n\n".join(parts)


def status_text(report: "SweepReport") -> str:
    """Where a sweep stands, in a few lines."""
    lines = [headline(report)]
    lines += [
        f"trial {trial.number} {trial.state}" + (f" on {trial.host}" if trial.host else "")
        for trial in report.trials
        if trial.state in ("running", "waiting")
    ]
    lines += [
        f"trial {trial.number} failed: {trial.reason}"
        for trial in report.trials
        if trial.state == "failed"
    ]
    lines += _not_confirmed(report)
    return "\n".join(lines)


def _not_confirmed(report: "SweepReport") -> list[str]:
    return [f"NOT confirmed: {one.line}; --resume runs it again" for one in report.unconfirmed]


def headline(report: "SweepReport") -> str:
    """The sweep in a line or two."""
    best = report.best_trial
    first = f"sweep {report.name}  {report.ended} of {report.total} trials ended, {report.status}"
    if best is None:
        return first
    again = next((one for one in report.confirmed if one.number == best.number), None)
    on_fresh = f"; {_again(again)} on fresh seeds" if again else ""
    return f"{first}\nbest: {best_line(best)}{on_fresh}"


def best_line(best: "TrialReport") -> str:
    """The best trial in a line."""
    return f"trial {best.number}  {value(best)}  {params_text(best.params)}"


def value(trial: "TrialReport") -> str:
    """A trial's value, with its interval where there is one; `> ` before a lower bound."""
    return ("> " if trial.at_least else "") + shown(trial.value, trial.lower, trial.upper)


def shown(value: float | None, lower: float | None, upper: float | None) -> str:
    """A value with its interval where there is one."""
    if value is None:
        return "-"
    if lower is None or upper is None:
        return f"{value:,.0f}" if abs(value) >= MANY else f"{value:,.6g}"
    if abs(upper) >= MANY:  # steps
        return f"{value:,.0f} [{lower:,.0f}, {upper:,.0f}]"
    return shown_rate(value, lower, upper)


def fresh(one: "Confirmed") -> str:
    """What values are worth on fresh seeds, and what they gain over the defaults."""
    return _again(one) + ("" if one.gain is None else f"  over defaults {gain(one)}")


def _again(one: "Confirmed") -> str:
    more = "> " if one.censored else ""
    never = f" ({one.censored} of {len(one.trainings)} never passed)" if one.censored else ""
    return more + shown(one.value, one.lower, one.upper) + never


def params_text(params: Mapping[str, Any]) -> str:
    """Values by the last parts of their keys."""
    names = short_names(list(params))
    return "  ".join(
        f"{name} {number(found)}" for name, found in zip(names, params.values(), strict=True)
    )


def number(found: Any) -> str:
    """A searched value in few digits."""
    return f"{found:.4g}" if isinstance(found, float) else str(found)


def short_names(keys: Sequence[str]) -> list[str]:
    """The last part of each key, or the whole where that is not enough to tell them apart."""
    last = [key.rpartition(".")[2] for key in keys]
    return last if len(set(last)) == len(last) else list(keys)


def _row(trial: "TrialReport", keys: Sequence[str]) -> Iterator[object]:
    yield trial.number
    yield from (number(trial.params[key]) for key in keys)
    yield value(trial)
    yield "-" if trial.seconds is None else duration(trial.seconds)
    yield trial.state + (f": {trial.reason}" if trial.reason else "")


def _confirmed(confirmed: "Sequence[Confirmed]", keys: Sequence[str]) -> str:
    fresh_head = "on fresh seeds [95 %]"
    head = ("trial", *short_names(keys), "in the search", fresh_head, "over defaults [95 %]")
    rows = [
        (
            one.label,
            *(number(one.params[key]) for key in keys),
            ("> " if one.searched_at_least else "") + shown(one.searched, None, None),
            _again(one),
            gain(one),
        )
        for one in confirmed
    ]
    title = (
        "The best again, on fresh seeds. The first column of values is too good, because the "
        "best of\nmany is also the luckiest; the second is what to expect. The intervals over the "
        "defaults\nhold the truth in 95 % all together."
    )
    return f"{title}\n\n{table(head, rows)}"


def gain(one: "Confirmed") -> str:
    """The difference to the defaults with its interval over the pairs of trainings."""
    if one.gain is None:
        return "-"
    counts_steps, seeds = abs(one.gain) >= MANY, len(one.trainings)
    if one.gain_lower is None or one.gain_upper is None:
        found = f"{one.gain:+,.0f}" if counts_steps else f"{one.gain:+.3f}"
        return f"{found} ({seeds} seeds, all alike)" if seeds > 1 else f"{found} (1 seed)"
    if counts_steps:
        return f"{one.gain:+,.0f} [{one.gain_lower:+,.0f}, {one.gain_upper:+,.0f}]"
    return shown_difference(one.gain, one.gain_lower, one.gain_upper)


def state_line(snapshot: "SweepSnapshot") -> str:
    """Where a sweep stands."""
    report = snapshot.report
    best = report.best_trial
    parts = [f"{report.ended} of {report.total} trials ended"]
    if report.status == "confirming":
        confirmed = report.confirm_ended - len(report.unconfirmed)
        parts.append(f"{confirmed} of {report.to_confirm} confirmed on fresh seeds")
        if report.unconfirmed:
            parts.append(f"{len(report.unconfirmed)} failed")
    if snapshot.seconds_left is not None:
        parts.append(f"about {duration(snapshot.seconds_left)} left")
    if best is not None:
        parts.append(f"best so far: {best_line(best)}")
    return "; ".join(parts)

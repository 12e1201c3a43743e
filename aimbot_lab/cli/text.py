"""What commands print: streams, tables, runs and sweeps."""

import ctypes
import errno
import io
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.foundation.shown_text import (
    one_line,
    shown_ends,
    shown_measure,
    shown_rate,
    shown_return,
    shown_speed,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from aimbot_lab.curriculum.reports import CurriculumView, LessonReport
    from aimbot_lab.experiment.runs.result import RunResult
    from aimbot_lab.sweep.coordinator import SweepSnapshot
    from aimbot_lab.sweep.report import Confirmed, SweepReport, TrialReport
    from aimbot_lab.training.run_hooks import TrainingSnapshot

STDOUT, STDERR = 1, 2
DOCUMENT = "aimbot_lab.document"  # in click's context, the stream of a command's document


class MessageFile(io.FileIO):
    """A descriptor for messages: what can't be written is dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: "ReadableBuffer") -> int:
        """All of `data` counts as written, whatever became of it."""
        try:
            return super().write(data) or _size(data)  # None: it would have to wait
        except OSError:
            return _size(data)


class DataFile(io.FileIO):
    """A descriptor for data: once the reader has left, what follows is dropped.

    Any other error, for example a full disk, is raised once.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._is_terminal = self.isatty()  # a terminal that was closed does not count as one
        self._broken = False

    def write(self, data: "ReadableBuffer") -> int:
        """How much of `data` was written; all of it once the reader has left."""
        if self._broken:
            return _size(data)
        try:
            return super().write(data)
        except OSError as error:
            # Else the interpreter tries again as it leaves, and changes the exit code.
            self._broken = True
            if error.errno == errno.EPIPE or (self._is_terminal and error.errno == errno.EIO):
                return _size(data)
            raise


def guard_streams() -> None:
    """Make standard output and standard error outlive their readers; call it once."""
    # Else the next file that is opened, a database say, gets what is meant for a closed stream.
    for descriptor in range(STDERR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _text(DataFile(STDOUT), sys.stdout)
    sys.stderr = _text(MessageFile(STDERR), sys.stderr)


def print_apart(ctx: click.Context) -> None:
    """Keep standard output for the document of the command of `ctx`: `document_stream` gives it.

    Whatever else is printed from here on goes to standard error, by this process or by those that
    it starts, in Python or in C: code of users prints where it likes.
    """
    stdout = document = sys.stdout
    if _descriptor(stdout) == STDOUT:
        stdout.flush()
        document = _text(DataFile(os.dup(STDOUT)), stdout)
        os.dup2(STDERR, STDOUT)
    sys.stdout = sys.stderr
    ctx.meta[DOCUMENT] = document
    ctx.call_on_close(partial(setattr, sys, "stdout", stdout))


def print_together() -> None:
    """Undo `print_apart`, before other processes print the document in place of this one."""
    document: TextIO | None = click.get_current_context().meta.pop(DOCUMENT, None)
    if document is None:
        return
    if (descriptor := _descriptor(document)) is not None:
        ctypes.CDLL(None).fflush(None)  # what C holds back would come to the document
        os.dup2(descriptor, STDOUT)
    sys.stdout = document


def document_stream() -> TextIO:
    """Where a command prints its document."""
    ctx = click.get_current_context(silent=True)
    if ctx is None or DOCUMENT not in ctx.meta:
        return sys.stdout
    document: TextIO = ctx.meta[DOCUMENT]
    return document


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # it is not a file
        return None


def _text(file: io.FileIO, like: TextIO) -> io.TextIOWrapper:
    """A text stream over `file` with the encoding and buffering of `like`."""
    raw = io.BufferedWriter(file)
    if not isinstance(like, io.TextIOWrapper):  # None where the descriptor was closed
        return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace")
    return io.TextIOWrapper(
        raw,
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )


def _size(data: "ReadableBuffer") -> int:
    return memoryview(data).nbytes


SHORTEST = 8  # characters that are left of a name, at least


class Fit(NamedTuple):
    """How a table is made to fit a terminal; what was left out stays in the JSON document."""

    width: int | None  # characters; None: as wide as it gets
    cut: str  # head of the column whose entries may be cut
    spare: Sequence[str] = ()  # heads of columns that may be left out


class _Column(NamedTuple):
    name: str
    head: list[str]  # lines
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(len, (*self.head, *self.cells)))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], fit: Fit | None = None) -> str:
    """Rows under their heads, columns padded to their widest entry."""
    columns = _columns(head, rows)
    if fit is not None and fit.width is not None and _width(columns) > fit.width:
        columns = _fitted(columns, fit, fit.width)
    return _joined(columns)


def stacked_table(head: Sequence[str], rows: Sequence[Sequence[object]], width: int | None) -> str:
    """As `table`, with columns that don't fit into `width` in further tables below.

    Each begins with the columns that tell the rows apart.
    """
    columns = _columns(head, rows)
    if width is None or _width(columns) <= width:
        return _joined(columns)
    columns = [column._replace(head=_wrapped_head(column)) for column in columns]
    apart = (n for n in range(1, len(head)) if len({(*row[:n],) for row in rows}) == len(rows))
    keys = columns[: next(apart, 1)]
    tables = [[*keys]]
    for column in columns[len(keys) :]:
        if _width([*tables[-1], column]) > width and len(tables[-1]) > len(keys):
            tables.append([*keys])
        tables[-1].append(column)
    return "\n\n".join(map(_joined, tables))


def _columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[_Column]:
    return [
        _Column(one_line(name), [one_line(name)], [one_line(str(row[i])) for row in rows])
        for i, name in enumerate(head)
    ]


def _joined(columns: Sequence[_Column]) -> str:
    heads = [*zip_longest(*(column.head[::-1] for column in columns), fillvalue="")][::-1]
    widths = [column.width for column in columns]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (*heads, *zip(*(column.cells for column in columns), strict=True))
    )


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    cut: str = "",
    spare: Sequence[str] = (),
) -> None:
    """Print rows under their heads, made to fit a terminal as `Fit` says."""
    click.echo(table(head, rows, Fit(terminal_width(), cut, spare)))


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + 2 * (len(columns) - 1)


def _fitted(columns: Sequence[_Column], fit: Fit, width: int) -> list[_Column]:
    """The columns with heads in several lines, then without the spare ones, then cut."""
    fitted = [column._replace(head=_wrapped_head(column)) for column in columns]
    for spare in fit.spare:
        if _width(fitted) > width:
            fitted = [column for column in fitted if column.name != spare]
    excess = max(_width(fitted) - width, 0)
    return [
        column._replace(
            cells=[cut(cell, max(column.width - excess, SHORTEST)) for cell in column.cells]
        )
        if column.name == fit.cut
        else column
        for column in fitted
    ]


def _wrapped_head(column: _Column) -> list[str]:
    """The head in two lines, or in one where that makes the column no wider."""
    narrowest = max(map(len, (*column.name.split(), *column.cells)))
    wrapped = (textwrap.wrap(column.name, width) for width in count(narrowest))
    return next(lines for lines in wrapped if len(lines) <= 2)


def cut(text: str, width: int) -> str:
    """The beginning of `text`, marked where it was cut to at most `width` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def terminal_width() -> int | None:
    """Characters in a line of standard output; None where it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(text: str, *, err: bool = False, most: int | None = None) -> str:
    """`text`, its lines broken at words where it goes to a terminal, indented as they begin.

    Elsewhere, too, where `most` says how long they may be.
    """
    stream = sys.stderr if err else sys.stdout
    width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else most
    if width is None:
        return text
    wrap = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    lines = [(line, line[: len(line) - len(line.lstrip())]) for line in text.split("\n")]
    return "\n".join(
        wrap(line, subsequent_indent=begin + "  " * bool(begin)) for line, begin in lines
    )


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shortened_number(value: float) -> str:
    """A number of any size with at least three digits, the whole ones all shown."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, indent=2), file=document_stream())


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise ConfigurationError, before long work, where the file `output` can't be written.

    `option` is the one that names it.
    """
    folder = output.absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"{option} {output}: there is no such folder")
    if output.is_dir():
        raise ConfigurationError(f"{option} {output}: is a folder; name a file in it")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise ConfigurationError(f"{option} {output}: can't be written: no permission")


def write_output(content: str | bytes, output: Path | None, *, option: str = "--output") -> None:
    """Write `content` to the file `output`, or to standard output where that is None.

    Raises ConfigurationError where the file can't be written.
    """
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        with replaced_whole(output) as fresh:
            fresh.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{option} {output}: can't be written: {reason}") from error
    click.echo(f"written to {output}", err=True)


WIN_RATE_HEAD, RETURN_HEAD = "win rate [95 %]", "mean return"
LESSON_HEAD = (
    *("#", "lesson", "passed at step", "episodes", "asks for", "evidence", "of the last"),
)
LOOK = "Look at it: "
SHORT_ID = 12  # characters of a run's id that a person is shown to type


def promotion_line(report: "LessonReport", step: int, *, width: int | None = None) -> str:
    """A passed lesson and its proof in one line, in fewer words to keep to `width`."""
    won = shown_rate(report.win_rate, report.lower, report.upper) + report.level
    where = f" at step {step:,}"
    begin = f"passed {report.name!r}{where} after {report.episodes:,} episodes"
    proofs = (report.proof(won), report.proof()) if report.measure else (f"win rate {won}", won)
    lines = [f"{begin}: {proof}" for proof in proofs]
    fitting = [line for line in lines if width is None or len(line) <= width]
    if width is None or fitting:
        return fitting[0]
    rest = f"{where}: {proofs[-1]}"
    return cut(report.name, width - len(rest)) + rest


def progress_line(snapshot: "TrainingSnapshot") -> str:
    """Where a training stands, in one line."""
    return (
        f"step {snapshot.step:,} of {snapshot.total_steps:,}  {lesson_line(snapshot.view)}  "
        f"{shown_speed(snapshot.steps_per_second)}  {time_left(snapshot)}"
    )


def lesson_line(view: "CurriculumView") -> str:
    """The lesson, its win rate with interval, and the threshold; its return without wins."""
    if not view.has_wins:
        earned = f"return {shown_return(view.mean_return)}"
        return (
            f"lesson {view.lesson + 1}/{view.lessons} {view.name!r} {earned}{measured_text(view)}"
        )
    won = shown_rate(view.win_rate.win_rate, view.win_rate.lower, view.win_rate.upper)
    limit = "" if view.threshold is None else shown_measure("win_rate", view.threshold)
    against = limit and f" against {limit}"
    lesson = f"lesson {view.lesson + 1}/{view.lessons} {view.name!r}"
    return f"{lesson} win rate {won}{against}{measured_text(view)}"


def measured_text(view: "CurriculumView") -> str:
    """What a lesson is measured by, where it is not evidence of a win rate."""
    if (measured := view.measured) is None:
        return ""
    judged, found = measured.measure, measured.value
    value = "-" if found is None else shown_measure(judged, found, digits=4)
    limit = shown_measure(judged, measured.threshold)
    return f"  {judged.replace('_', ' ')} {value} against {limit}"


def time_left(snapshot: "TrainingSnapshot") -> str:
    """Time until the last step at the present speed; passing all lessons ends it sooner."""
    left = (snapshot.total_steps - snapshot.step) / max(snapshot.steps_per_second, 1.0)
    return f"at most {duration(max(left, 0.0))} left"


def show_result(result: "RunResult", data_dir: Path | None, *, as_json: bool) -> None:
    """Print how a run ended, what is missing of it, and how to resume it and to look at it."""
    from aimbot_lab.experiment.runs.result import NEXT_COMMANDS, outcome

    if as_json:
        print_json(result.as_json())
    else:
        click.echo(summary(result, terminal_width()))
    if result.status != "FINISHED":
        click.echo(wrapped(one_line(outcome(result)), err=True), err=True)
    lines = []
    why = f" ({result.tracking_fault})" if result.tracking_fault else ""
    if result.entries_waiting:
        lines.append(
            f"{result.entries_waiting} tracked entries wait for the tracking store{why}; "
            "the next aimbot-lab command tries to deliver them"
        )
    if result.entries_refused:
        lines.append(f"the tracking store refused {result.entries_refused} entries for good{why}")
    if result.entries_dropped:
        lines.append(f"{result.entries_dropped} entries were not tracked: no room for them")
    if result.agent_folder is not None:
        lines.append(f"the agent is not with the run, but in {result.agent_folder}")
    for line in lines:
        click.echo(wrapped(one_line(line), err=True), err=True)
    if way := resume_command(result, data_dir):
        click.echo(f"To resume it: {way}", err=True)
    click.echo(f"{LOOK}{view_command(result.tracking_uri, data_dir)}", err=as_json)
    if not as_json:
        for purpose, (word, *more) in NEXT_COMMANDS.items():
            if word == "explain" and not any(lesson.asked for lesson in result.lessons):
                continue  # without lessons there is nothing to explain
            way = _command([word, result.run_id[:SHORT_ID], *more], data_dir)
            click.echo(f"{purpose}: {way}")


def resume_command(result: "RunResult", data_dir: Path | None) -> str:
    """The command that resumes a run; empty where it can't be resumed."""
    if result.resumes_at is None:
        return ""
    arguments = ["resume", result.run_id[:SHORT_ID]]
    if result.spent_steps:
        arguments += ["--set", f"train.total_steps={2 * result.steps}"]
    return _command(arguments, data_dir)


def view_command(tracking_uri: str, data_dir: Path | None) -> str:
    """What to paste into the shell, or open, to see the run."""
    if tracking_uri.startswith(("http://", "https://")):
        return tracking_uri
    if data_dir is not None or tracking_uri.endswith("/mlflow.db"):
        return _command(["ui"], data_dir)
    return _command(["ui", "--tracking-uri", tracking_uri], None)


def _command(arguments: Sequence[str], data_dir: Path | None) -> str:
    program, called = "aimbot-lab", Path(sys.argv[0])
    if shutil.which(program) is None:  # as this command line was called
        program = shlex.quote(str(called))
        if called.suffix == ".py":  # this package, or the training of a command with several
            program = f"{shlex.quote(sys.executable)} -m aimbot_lab"
    where = [] if data_dir is None else ["--data-dir", str(data_dir)]
    return f"{program} {shlex.join([*arguments, *where])}"


def summary(result: "RunResult", width: int | None) -> str:
    """The run in two short tables, at most `width` characters wide where that can be had."""
    lessons = [
        (
            number,
            lesson.name,
            "-" if lesson.ended_at_step is None else f"{lesson.ended_at_step:,}",
            f"{lesson.episodes:,}",
            lesson.asked or "-",
            lesson.found or "-",
            f"{lesson.window:,}" if lesson.window else "-",
            shown_rate(lesson.win_rate, lesson.lower, lesson.upper) + lesson.level
            if result.has_wins
            else shown_return(lesson.mean_return),
        )
        for number, lesson in enumerate(result.lessons, start=1)
    ]
    cells = [
        (
            cell.target,
            cell.difficulty or "-",
            f"{cell.episodes:,}",
            shown_rate(cell.win_rate, cell.lower, cell.upper),
        )
        for cell in result.cells
    ]
    head = (
        f"run {result.run_id}  {result.status}\n"
        f"seed {result.seed}  {result.steps:,} steps in {duration(result.seconds)} of training "
        f"({shown_speed(result.steps_per_second)})"
    )
    worth = WIN_RATE_HEAD if result.has_wins else RETURN_HEAD
    fit = Fit(width, cut="lesson", spare=["of the last", worth])
    parts = [head, table((*LESSON_HEAD, worth), lessons, fit)]
    if result.has_wins:
        parts.append(table(("target", "difficulty", "episodes", WIN_RATE_HEAD), cells))
    return "\n\n".join(parts)


MANY = 1000  # from here on a value is a count of steps, not a rate


def report_text(report: "SweepReport") -> str:
    """All trials, and the best once more on fresh seeds."""
    from aimbot_lab.sweep.report import verdict

    keys = list(report.trials[0].params) if report.trials else []
    short = short_names(keys)
    head = ("trial", *short, f"{report.measure} [95 %]", "took", "state")
    rows = [(*_row(trial, keys),) for trial in report.trials]
    fit = Fit(terminal_width(), cut="state", spare=["took"])
    parts = [wrapped(headline(report)), table(head, rows, fit)]
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
    if max(-lower, upper) >= MANY:  # steps, or returns
        return f"{value:,.0f} [{lower:,.0f}, {upper:,.0f}]"
    if lower < 0 or upper > 1:
        return shown_return(value, lower, upper)
    low, high = shown_ends(lower, upper)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def confirmed_lines(report: "SweepReport") -> Iterator[tuple[str, str]]:
    """The label of each set of values that was to be confirmed, and what came of it."""
    for one in report.confirmed:
        gained = "" if one.gain is None else f"  over defaults {gain(one)}"
        yield one.label, f"trial {one.label} on fresh seeds: {_again(one)}{gained}"
    for lost in report.unconfirmed:
        yield lost.label, lost.line


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
        "The best again, on fresh seeds. The first column of values is too good, because the best "
        "of many is also the luckiest; the second is what to expect. All intervals over the "
        "defaults together hold the truth in 95 % of sweeps."
    )
    return f"{wrapped(title)}\n\n{table(head, rows, Fit(terminal_width(), cut='trial'))}"


def gain(one: "Confirmed") -> str:
    """The difference to the defaults with its interval over the pairs of trainings."""
    if one.gain is None:
        return "-"
    seeds, ends = len(one.trainings), (one.gain_lower or 0.0, one.gain_upper or 0.0)
    counts_steps = max(abs(one.gain), *map(abs, ends)) >= MANY
    if one.gain_lower is None or one.gain_upper is None:
        found = f"{one.gain:+,.0f}" if counts_steps else f"{one.gain:+.3f}"
        return f"{found} ({seeds} seeds, all alike)" if seeds > 1 else f"{found} (1 seed)"
    if counts_steps:
        return f"{one.gain:+,.0f} [{one.gain_lower:+,.0f}, {one.gain_upper:+,.0f}]"
    return f"{one.gain:+.3f} [{one.gain_lower:+.3f}, {one.gain_upper:+.3f}]"


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

"""The harness of all benchmarks: variants by turns, what they come to, and the report.

What else a machine does can only slow a turn down, and slows those beside it alike. So the fastest
turn of each variant counts, or each turn is compared with that of a reference beside it.
"""

import hashlib
import json
import math
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

from aimbot_lab.foundation.episodes import student_errors
from aimbot_lab.foundation.errors import LabError, reason_and_place
from aimbot_lab.foundation.garbage import free_training

CPU_INFO = Path("/proc/cpuinfo")
SECONDS_TO_END = 5.0  # of a process whose pipe is closed
Say = Callable[[str], None]  # takes a line of progress
Name = TypeVar("Name")
Found = TypeVar("Found")


class Table(NamedTuple):
    """Rows of a document under their keys, as a person reads them."""

    title: str
    rows: Iterable[Mapping[str, Any]]
    shares: Collection[str] = ("share", "shares", "exchange_share")  # keys whose values are shares

    def cells(self) -> list[dict[str, str]]:
        """Of every row the text by head; a mapping of numbers has a column for each."""
        return [dict(self._row(row)) for row in self.rows]

    def _row(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for key, value in row.items():
            share, head = key in self.shares, key.replace("_", " ").replace(" us ", " µs ")
            if isinstance(value, Mapping) and {"lower", "lowest"} & value.keys():
                mean, *ends = ("never" if a is None else cell(a, share) for a in value.values())
                ends = [end.removesuffix(" %") for end in ends]
                known = set(ends) not in ({"never"}, {"-"})
                yield head, f"{mean} [{', '.join(ends)}]" if known else mean
            elif isinstance(value, Mapping):
                for name, one in value.items():
                    yield name if share else f"{head}, {name}", cell(one, share)
            else:
                yield head, cell(value, share)


def cell(value: Any, share: bool = False) -> str:
    """A value of a table, as a person reads it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if share:
        return format(100 * value, ".1f" if abs(value) >= 0.1 else ".2f") + " %"
    if isinstance(value, float):
        small = "#.3g" if abs(value) < 0.1 else ".2f"
        return format(value, ",.0f" if abs(value) >= 100 else small)
    return f"{value:,}" if isinstance(value, int) else str(value)


class Report(NamedTuple):
    """What a benchmark found, for a program and for a person."""

    document: Mapping[str, Any]
    parts: Sequence[str | Table]


def turns(
    names: Iterable[Name], count: int, *, alternate: bool = True
) -> Iterator[tuple[int, Name]]:
    """(turn from 0, variant) of `count` turns of each variant, every other turn backwards."""
    order = list(names)
    for turn in range(count):
        for name in order[:: -1 if alternate and turn % 2 else 1]:
            yield turn, name


def by_turns(
    variants: Mapping[Name, Callable[[], Found]],
    count: int,
    *,
    say: Say = lambda _: None,
    what: str = "variants",
    warm_up: bool = False,
) -> dict[Name, list[Found]]:
    """What each variant returned in each of its `count` turns; `warm_up` calls are not kept."""
    found: dict[Name, list[Found]] = {name: [] for name in variants}
    if warm_up:
        for variant in variants.values():
            variant()
    for done, (turn, name) in enumerate(turns(variants, count)):
        if done % len(variants) == 0:
            say(f"repeat {turn + 1} of {count}: {len(variants)} {what}")
        found[name].append(variants[name]())
    return found


def seconds_of(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """How long `call` took, by `clock`."""
    begun = clock()
    call()
    return clock() - begun


def seconds_by_turns(
    variants: Mapping[Name, Callable[[], object]],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
    **told: Any,
) -> dict[Name, list[float]]:
    """How long each variant took in each of its `count` turns; the rest is for `by_turns`."""
    timed = {one: partial(seconds_of, call, clock) for one, call in variants.items()}
    return by_turns(timed, count, **told)


def mean_ratio(ratios: Iterable[float]) -> dict[str, float]:
    """The geometric mean of one or more `ratios` with its 95 % interval; NaN of a single one.

    By Student's t of their logarithms.
    """
    logs = [math.log(ratio) for ratio in ratios]
    mean, half = fmean(logs), math.nan
    if len(logs) > 1:
        half = student_errors(len(logs)) * stdev(logs)
    ends = {"mean": mean, "lower": mean - half, "upper": mean + half}
    return {name: math.exp(end) for name, end in ends.items()}


def kept(
    file: Path, about: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """What `measure` gives of what `about` says: as the lines of `file` have it, or from now on.

    `about` is JSON, and another one for each configuration.
    """
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # of a line that was broken off
                one: dict[str, Any] = json.loads(line)
                if one.pop("key") == key:
                    return one
    free_training()
    found = dict(measure())
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"\n{json.dumps({'key': key, **found})}\n")  # after one that was broken off
    return found


def printed_number(code: str, **environment: str) -> float:
    """The number that Python `code` prints in a process of its own, with this environment."""
    words, inherited = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(words, env=inherited, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise LabError(f"a measurement in a process of its own failed: {reason or done.returncode}")
    return float(done.stdout)


@contextmanager
def group(
    work: Callable[..., None],
    given: Sequence[Any],
    environments: Sequence[Mapping[str, str]] = ({},),
) -> Iterator[Callable[[Any], list[Any]]]:
    """A process for each of `environments`, which calls `work` with its end of a pipe and `given`.

    What is asked is sent to all of them, and each has to answer. They end with the block. Asking
    raises LabError where one fails.
    """
    context, ends = multiprocessing.get_context("spawn"), list[Connection]()

    def ask(question: Any) -> list[Any]:
        for end in ends:
            with suppress(BrokenPipeError):  # that there is no answer says why
                end.send(question)
        answers = []
        for end in ends:
            with suppress(EOFError, ConnectionError):  # it ended without an answer
                answers.append(end.recv())
        failed = [one for one in answers if isinstance(one, str)]
        if failed or len(answers) < len(ends):
            raise LabError(f"a process of the benchmark failed: {'; '.join(failed) or 'it ended'}")
        return answers

    with ExitStack() as stack:
        for environment in environments:
            ours, theirs = context.Pipe()
            arguments = (work, theirs, environment, given)
            member = context.Process(target=_work, args=arguments, daemon=True)
            # Inherited from the first moment: Ctrl-C ends the parent, and the pipes with it.
            usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
            try:
                member.start()
            finally:
                signal.signal(signal.SIGINT, usual)
            theirs.close()
            stack.callback(member.kill)
            stack.callback(member.join, SECONDS_TO_END)
            ends.append(ours)
        for end in ends:  # all are dismissed before the first is waited for
            stack.callback(end.close)
        yield ask


def _work(
    work: Callable[..., None], end: Connection, environment: Mapping[str, str], given: Sequence[Any]
) -> None:
    os.environ.update(environment)
    try:
        work(end, *given)
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent reports it
        with suppress(BrokenPipeError):  # the pipe was closed, which is the end
            end.send(reason_and_place(error))


def this_machine() -> dict[str, Any]:
    """The processor, the cores that this process may use, and what decides how fast kernels are."""
    usable = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": _cpu_model(),
        "cpu_count": len(usable(0)) if usable else os.cpu_count() or 1,
        "python": platform.python_version(),
        "numba": version("numba"),
        "numpy": version("numpy"),
    }


def _cpu_model() -> str:
    if CPU_INFO.is_file():
        for line in CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()

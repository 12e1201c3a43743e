"""`aimbot-lab run --seeds N`: the same curriculum on several seeds, side by side, as one result."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.commands.compare import compared_configurations, show_configurations
from aimbot_lab.cli.stopping import handled_signals
from aimbot_lab.cli.tied_process import tied_lab
from aimbot_lab.cli.training import EXIT_CODES
from aimbot_lab.cli.views.run_text import LOOK, SHORT_ID
from aimbot_lab.cli.views.text import print_json

EPISODES = 100  # of each cell, that every agent plays at the end


class SeedsRequest(NamedTuple):
    """The trainings: the words of `aimbot-lab run` that all share, and the first seed."""

    words: Sequence[str]
    one_core: Sequence[str]  # further words for one that trains beside others
    name: str | None
    first_seed: int
    seeds: int  # how many


@dataclass
class _Child:
    """One training in its own process."""

    seed: int
    process: subprocess.Popen[str]
    readers: tuple[threading.Thread, ...]
    output: list[str] = field(default_factory=list)
    look: str | None = None  # where to look at its run

    def receive(self, line: str) -> None:
        """Pass a line of its standard error on; where to look is said once, at the end of all."""
        if line.startswith(LOOK):
            self.look = line
        else:
            click.echo(f"seed {self.seed}: {line}", err=True)


class _Trainings:
    """The trainings, as many at a time as there are cores."""

    def __init__(self, request: SeedsRequest) -> None:
        self._request = request
        self.children: list[_Child] = []
        self._signals: list[int] = []

    def receive(self, number: int, _frame: object = None) -> None:
        """Pass a signal on: the first one stops and saves all, the second aborts."""
        if number == signal.SIGHUP and self._signals:
            return
        self._signals.append(number)
        for child in self.children:
            if child.process.poll() is None:
                child.process.send_signal(signal.SIGTERM)

    @property
    def stopped(self) -> bool:
        """Whether a signal came."""
        return bool(self._signals)

    def run(self) -> None:
        """Have all trained; returns once every process has ended."""
        at_once = side_by_side(self._request.seeds)
        first = self._request.first_seed
        left = list(range(first, first + self._request.seeds))
        while left or any(child.process.poll() is None for child in self.children):
            running = [child for child in self.children if child.process.poll() is None]
            if left and len(running) < at_once and not self.stopped:
                self.children.append(_begin(self._request, left.pop(0), alone=at_once == 1))
            elif running:
                _wait_for_one(running)
            else:
                break
        for child in self.children:
            for reader in child.readers:
                reader.join()
            with child.process:  # closes its pipes
                pass


def side_by_side(count: int) -> int:
    """How many trainings run at a time: one on each core that this process may use."""
    return max(1, min(count, len(os.sched_getaffinity(0))))


def _begin(request: SeedsRequest, seed: int, *, alone: bool) -> _Child:
    name = [] if request.name is None else ["--name", f"{request.name} seed {seed}"]
    threads = () if alone else request.one_core
    process = subprocess.Popen(
        tied_lab(["run", *request.words, *threads, *name, "--seed", str(seed), "--json"]),
        stdin=subprocess.PIPE,  # never written to: its end shows that this process is gone
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C comes to this process alone, which passes it on
    )
    child = _Child(seed, process, ())
    child.readers = (
        threading.Thread(target=_read, args=(process.stdout, child.output.append), daemon=True),
        threading.Thread(
            target=_read,
            args=(process.stderr, child.receive),
            daemon=True,
        ),
    )
    for reader in child.readers:
        reader.start()
    return child


def _read(stream: Any, take: Any) -> None:
    with stream:
        for line in stream:
            take(line.rstrip("\n"))


def _wait_for_one(running: Sequence[_Child]) -> None:
    """Wait a moment for one of the processes, or for a signal."""
    try:
        running[0].process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        return


def train_seeds(request: SeedsRequest, place: options.StorePlace, *, as_json: bool) -> int:
    """The exit code: 0 where all passed, 130 where they were stopped, else 1.

    Ends with the common result of all trainings, evaluated again in the same episodes.
    """
    trainings = _Trainings(request)
    with handled_signals(trainings.receive):
        trainings.run()
    results = [_result(child) for child in trainings.children]
    ended = [one for one in results if one is not None]
    codes = [child.process.returncode for child in trainings.children]
    summary = None
    if not trainings.stopped and ended:
        summary = _summary([one["run_id"] for one in ended], place)
    if as_json:
        document = summary and summary.as_json()
        print_json({"schema": 1, "runs": ended, "summary": document})
    elif summary is not None:
        show_configurations(summary)
    if look := next((child.look for child in trainings.children if child.look), None):
        click.echo(look, err=True)
    if trainings.stopped:
        _report_stopped(ended)
        return EXIT_CODES["KILLED"]
    return 0 if codes and not any(codes) else 1


def _result(child: _Child) -> dict[str, Any] | None:
    """What the training printed; None where it came to nothing."""
    try:
        document: dict[str, Any] = json.loads("\n".join(child.output))
    except ValueError:
        return None
    return document


def _summary(runs: Sequence[str], place: options.StorePlace) -> Any:
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest

    request = ComparisonRequest(episodes=EPISODES, seed=1, margin=0.05)
    return compared_configurations(runs, "last", request, place)


def _report_stopped(ended: Sequence[dict[str, Any]]) -> None:
    for one in ended:
        if one["resumes_at"] is not None:
            run_id = one["run_id"][:SHORT_ID]
            click.echo(f"seed {one['seed']}: aimbot-lab resume {run_id} resumes it", err=True)

"""A training that the command line starts: in this process, or in several that share it.

`--processes N` and `--on ray` start several; RANK and WORLD_SIZE say that this is one of several.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.commands.compare import compared_configurations, show_configurations
from aimbot_lab.cli.run_text import LOOK, SHORT_ID, show_result
from aimbot_lab.cli.stopping import STOPPING, STOPPING_TOGETHER, handled_signals, stop_on_signals
from aimbot_lab.cli.streams import print_together
from aimbot_lab.cli.text import print_json
from aimbot_lab.cli.tied_process import tied_lab
from aimbot_lab.cli.view import training_view
from aimbot_lab.cluster.connection import ADDRESS, HeadLostError
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import CHECKPOINTS_NAME

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.crew import Crew
    from aimbot_lab.experiment.runs.run_record import ResumableRun, RunRequest
    from aimbot_lab.training.processes.exchange import Rank

KEY = "AIMBOT_LAB_SHARED_RUN"
"""Environment variable: under which key processes that are started anew find their run again."""
PORTS = "Ray and gloo open ports and encrypt nothing: use them in a network you trust"
PASSED_ON = ("AIMBOT_LAB_", "NUMBA_", "OMP_NUM_THREADS", "NO_COLOR")
FOR_THE_LEADER = ("MLFLOW_", "AWS_")  # who alone tracks; may hold passwords
EXIT_CODES = {"FINISHED": 0, "FAILED": 1, "KILLED": 130}


def train(
    request: "RunRequest",
    data_dir: Path | None,
    *,
    as_json: bool,
    news: str = "",
    crew: "Crew | None" = None,
    on: str | None = None,
) -> int:
    """The exit code of a training, which is shown while it runs and summarised at its end.

    `news` is said before it begins. This process leads the others of `crew`; its actors, if it has
    any, are `on` Ray or processes of this machine.
    """
    words = STOPPING_TOGETHER if crew is not None and crew.is_shared else STOPPING
    with training_view(request.run_name) as view, stop_on_signals(view.notice, words) as stop:
        if news:
            view.notice(news)
        view.stage("loading")
        from aimbot_lab.experiment.runs.crew import Crew
        from aimbot_lab.experiment.runs.run import run_curriculum

        actors = request.curriculum.config.train.actors
        with ExitStack() as placed:
            group = None
            if on is not None and actors is not None:
                from aimbot_lab.cluster.training import connected_actors

                group = placed.enter_context(connected_actors(actors.number))
            crew = crew or Crew(actors=group)
            result = run_curriculum(
                request, view, should_stop=stop, on_outage=view.notice, crew=crew
            )
    show_result(result, data_dir, as_json=as_json)
    return EXIT_CODES[result.status]


def own_place(launch: options.LaunchOptions) -> "Rank":
    """The place of this process among those of one training, if it was started as one of several.

    Raises UsageError where it is to start processes itself.
    """
    from aimbot_lab.training.processes.exchange import RANK, WORLD_SIZE, rank_from_environment

    place = rank_from_environment()
    if place.count > 1 and not launch.is_one_process:
        raise click.UsageError(
            f"{launch.option} can't be used in one of several processes ({RANK} and "
            f"{WORLD_SIZE} are set)"
        )
    return place


def launch_training(
    words: Sequence[str],
    launch: options.LaunchOptions,
    folder: DataFolder,
    *,
    resumed: str | None = None,
    allow_env: Sequence[str] = (),
) -> int:
    """The exit code of `aimbot-lab` with `words`, in the processes that train one run.

    `resumed` is the run that goes on, if that is known already; `allow_env` names variables that
    its curriculum reads.
    """
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs

    print_together()
    key, code = uuid.uuid4().hex, 1

    def progress() -> int | None:
        return _newest_step(folder, key, resumed)

    try:
        if launch.on is not None:
            code = _launch_on_ray(
                words, launch, folder, {**_own(PASSED_ON, allow_env), KEY: key}, progress
            )
        else:
            from aimbot_lab.training.processes.supervisor import supervise

            code = supervise(
                [sys.executable, "-P", "-m", "aimbot_lab", *words],
                launch.processes.most,
                environment={KEY: key},
                report=_report,
                progress=progress,
            )
    finally:
        if code:
            close_orphan_runs(folder)  # one whose leader was killed
    return code


def _launch_on_ray(
    words: Sequence[str],
    launch: options.LaunchOptions,
    folder: DataFolder,
    environment: Mapping[str, str],
    progress: Callable[[], object],
) -> int:
    from aimbot_lab.cluster.training import LaunchCallbacks, RayLaunch, launch_on_ray
    from aimbot_lab.experiment.runs.run_record import close_orphan_runs

    if ADDRESS in os.environ:
        _report(PORTS)
    streams = {1: sys.stdout, 2: sys.stderr}  # Ray's own words are kept from the first one

    def say(descriptor: int, data: bytes) -> None:
        streams[descriptor].buffer.write(data)
        streams[descriptor].flush()

    asked = RayLaunch(words, environment, _own(FOR_THE_LEADER), launch.processes)
    try:
        return launch_on_ray(asked, LaunchCallbacks(_report, say, progress))
    except HeadLostError as error:
        close_orphan_runs(folder)
        _report(one_line(f"error: {error}"))
        os._exit(error.exit_code)  # at a usual end Ray would wait for its head


def _own(beginnings: tuple[str, ...], names: Sequence[str] = ()) -> Mapping[str, str]:
    """Our environment variables with these names, and those that begin so."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in names or name.startswith(beginnings)
    }


def _report(line: str) -> None:
    click.echo(line, err=True)


def _newest_step(folder: DataFolder, key: str, resumed: str | None) -> int | None:
    """The step of the newest checkpoint of the run that is trained; None without one."""
    from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder

    run = _begun_run(folder, key)
    run_id = resumed if run is None else run.run_id
    if run_id is None:
        return None
    return CheckpointFolder(folder.run_folder(run_id) / CHECKPOINTS_NAME).newest_step


def run_key() -> str | None:
    """Under which key this process's run is found again; None where no launcher of ours waits."""
    return os.environ.get(KEY)


def is_one_of_several(place: "Rank") -> bool:
    """Whether a launcher has started this process for a training that others may share."""
    return place.count > 1 or run_key() is not None


def begun_run(folder: DataFolder) -> "ResumableRun | None":
    """The run that this process's launcher has begun before, in other processes, if any."""
    key = run_key()
    return None if key is None else _begun_run(folder, key)


def _begun_run(folder: DataFolder, key: str) -> "ResumableRun | None":
    from aimbot_lab.experiment.runs.run_record import resumable_runs

    return next(iter(resumable_runs(folder, key=key)), None)


def take_part(
    place: "Rank",
    prepare: "Callable[[], tuple[RunRequest, str]]",
    where: options.StorePlace,
    *,
    as_json: bool,
) -> int:
    """The exit code of this process, one of several that train the run which `prepare` gives.

    That also gives what is said before the run begins.

    Only the leader shows, tracks and reports anything; of an error that it shows too, the others
    have the exit code alone.
    """
    from aimbot_lab.experiment.runs.crew import Crew
    from aimbot_lab.training.processes.exchange import LostError
    from aimbot_lab.training.processes.gloo import connect

    try:
        exchange = connect(place)
        crew = Crew(exchange)
        try:
            with crew.telling():
                request, news = _agreed(crew, prepare, where)
            if place.leads:
                code = train(request, where.data_dir, as_json=as_json, news=news, crew=crew)
            else:
                code = _follow(request, crew)
            return crew.exit_code(code) if run_key() is None else code
        except (LabError, click.ClickException) as error:
            if place.leads or not crew.failed:
                raise
            return error.exit_code
        finally:
            exchange.close()
    except LostError as error:
        if KEY in os.environ:  # whose launcher says which process was lost, and why
            return error.exit_code
        raise


def _agreed(
    crew: "Crew", prepare: "Callable[[], tuple[RunRequest, str]]", where: options.StorePlace
) -> "tuple[RunRequest, str]":
    """What all processes train; a launcher's workers are handed it by the one that leads."""
    from aimbot_lab.training.checks import check_sharing

    if run_key() is not None and not crew.exchange.place.leads:
        return crew.take(where.folder), ""
    request, news = prepare()
    check_sharing(request.curriculum.config, crew.exchange.place.count)
    if run_key() is None:
        crew.compare(request)
    else:
        crew.give(request)
    return request, news


def _follow(request: "RunRequest", crew: "Crew") -> int:
    from aimbot_lab.experiment.runs.crew import follow_run

    asked: list[int] = []

    def receive(number: int, _frame: FrameType | None = None) -> None:
        asked.append(number)  # the leader says so, and aborts where it has to

    with handled_signals(receive):
        outcome = follow_run(request, crew, should_stop=lambda: bool(asked))
    return EXIT_CODES["KILLED"] if outcome.stopped else 0


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

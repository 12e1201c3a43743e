"""A training that the command line starts: in this process, or in several that share it.

`--processes N` and `--on ray` start several; RANK and WORLD_SIZE say that this is one of several.
`--seeds N` starts runs of their own.
"""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.commands.judging import compared_configurations, show_configurations
from aimbot_lab.cli.stopping import (
    STOPPING,
    STOPPING_TOGETHER,
    handled_signals,
    stop_on_signals,
    tied_lab,
)
from aimbot_lab.cli.text import LOOK, SHORT_ID, print_json, print_together, show_result
from aimbot_lab.cli.view import training_view
from aimbot_lab.cluster.connection import ADDRESS, HeadLostError, connected
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.tracking.data_folder import DataFolder

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
                from aimbot_lab.cluster.places import RayActors

                group = RayActors(placed.enter_context(connected(actors.number)))
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

    progress = partial(_newest_step, folder, key, resumed)
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
    from aimbot_lab.experiment.runs.run_record import CheckpointFolder
    from aimbot_lab.tracking.run_folder import CHECKPOINTS_NAME

    run = begun_run(folder, key)
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


def begun_run(folder: DataFolder, key: str | None) -> "ResumableRun | None":
    """The run that was begun under `key` before, in other processes, if any."""
    from aimbot_lab.experiment.runs.run_record import resumable_runs

    return None if key is None else next(iter(resumable_runs(folder, key=key)), None)


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


class _SeedRuns:
    """Runs of `aimbot-lab run` with `words`, a seed each, in processes of their own."""

    def __init__(self, words: Sequence[str], name: str | None) -> None:
        self._words, self._name = words, name
        self._processes: list[subprocess.Popen[str]] = []
        self.looks: list[str] = []  # where to look at them, which is said once
        self.signals: list[int] = []

    def receive(self, number: int, _frame: object = None) -> None:
        """Pass a signal on: the first one stops and saves all, the second aborts."""
        if number == signal.SIGHUP and self.signals:
            return
        self.signals.append(number)
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)

    def train(self, seed: int) -> tuple[int, dict[str, Any] | None] | None:
        """Exit code and result of a seed, the latter None where it came to nothing.

        None for one that did not begin, because all are to stop.
        """
        if self.signals:
            return None
        name = [] if self._name is None else ["--name", f"{self._name} seed {seed}"]
        with TemporaryFile("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                tied_lab(["run", *self._words, *name, "--seed", str(seed), "--json"]),
                stdin=subprocess.PIPE,  # never written to: its end shows that this process is gone
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C comes to this process alone, which passes it on
            )
            with process:
                self._processes.append(process)
                if self.signals:
                    process.send_signal(signal.SIGTERM)
                assert process.stderr is not None
                for line in map(str.rstrip, process.stderr):
                    if line.startswith(LOOK):
                        self.looks.append(line)
                    else:
                        click.echo(f"seed {seed}: {line}", err=True)
            output.seek(0)
            with suppress(ValueError):
                return process.returncode, json.load(output)
            return process.returncode, None


def side_by_side(count: int) -> int:
    """How many runs train at a time: one on each core that this process may use."""
    return max(1, min(count, len(os.sched_getaffinity(0))))


def train_seeds(
    words: Sequence[str],
    seeds: range,
    place: options.StorePlace,
    *,
    name: str | None,
    one_core: Sequence[str],
    as_json: bool,
) -> int:
    """The exit code: 0 where all passed, 130 where they were stopped, else 1.

    Each seed is a run with `words`, and with `one_core` where it trains beside others. Ends with
    the common result of all, evaluated again in the same episodes.
    """
    at_once = side_by_side(len(seeds))
    runs = _SeedRuns([*words, *one_core] if at_once > 1 else words, name)
    with handled_signals(runs.receive), ThreadPoolExecutor(at_once) as pool:
        begun = [one for one in pool.map(runs.train, seeds) if one is not None]
    ended = [result for _, result in begun if result is not None]
    summary = None
    if not runs.signals and ended:
        from aimbot_lab.experiment.analysis.comparison import ComparisonRequest

        request = ComparisonRequest(episodes=EPISODES, seed=1, margin=0.05)
        ids = [one["run_id"] for one in ended]
        summary = compared_configurations(ids, "last", request, place)
    if as_json:
        document = summary and summary.as_json()
        print_json({"schema": 1, "runs": ended, "summary": document})
    elif summary is not None:
        show_configurations(summary)
    for look in runs.looks[:1]:
        click.echo(look, err=True)
    if not runs.signals:
        return int(not begun or any(code for code, _ in begun))
    for one in ended:
        if one["resumes_at"] is not None:
            run_id = one["run_id"][:SHORT_ID]
            click.echo(f"seed {one['seed']}: aimbot-lab resume {run_id} resumes it", err=True)
    return EXIT_CODES["KILLED"]

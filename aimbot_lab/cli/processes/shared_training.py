"""`--processes N` and `--on ray`: one training in several processes, and this process as one."""

import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.processes.stopping import handled_signals
from aimbot_lab.cli.processes.streams import print_together
from aimbot_lab.cli.views.training import EXIT_CODES, train
from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.experiment.config.settings import CurriculumFile
    from aimbot_lab.experiment.runs.crew import Crew
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.experiment.runs.resumable_runs import ResumableRun
    from aimbot_lab.tracking.data_folder import DataFolder
    from aimbot_lab.training.processes.place import Place

KEY = "AIMBOT_LAB_SHARED_RUN"
"""Environment variable: under which key processes that are started anew find their run again."""
PORTS = "Ray and gloo open ports and encrypt nothing: use them in a network you trust"
PASSED_ON = ("AIMBOT_LAB_", "NUMBA_", "OMP_NUM_THREADS", "NO_COLOR")
FOR_THE_LEADER = ("MLFLOW_", "AWS_")  # who alone tracks; may hold passwords
MAX_PROCESSES = 64
MAX_DIGITS = 18  # which Python reads at once
Result = TypeVar("Result")


class Span(NamedTuple):
    """At least and at most so many processes."""

    least: int
    most: int

    @property
    def is_elastic(self) -> bool:
        """Whether there may be fewer or more."""
        return self.least < self.most

    def __str__(self) -> str:
        return f"{self.least}:{self.most}" if self.is_elastic else str(self.most)


ONE = Span(1, 1)


class SpanType(click.ParamType[Span]):
    """N or MIN:MAX, both from 1 to `highest`."""

    name = "N|MIN:MAX"

    def __init__(self, highest: int) -> None:
        self._highest = highest

    def convert(self, value: Any, param: Any, ctx: Any) -> Span:
        """The span that `value` says."""
        if isinstance(value, Span):
            return value
        first, colon, last = str(value).partition(":")
        span = Span(self._number(first, param, ctx), self._number(last or first, param, ctx))
        if (colon and not last) or span.least > span.most:
            self.fail(f"{value!r} is not MIN:MAX with MIN at most MAX.", param, ctx)
        return span

    def _number(self, text: str, param: Any, ctx: Any) -> int:
        if not (text.isascii() and text.isdigit()):
            self.fail(f"{text!r} is not a number; N or MIN:MAX is.", param, ctx)
        if len(text) > MAX_DIGITS or not 1 <= int(text) <= self._highest:
            self.fail(f"{text} is not in the range 1<=x<={self._highest}.", param, ctx)
        return int(text)


class LaunchOptions(NamedTuple):
    """In how many processes a training runs, and what places them or its actors."""

    processes: Span
    on: str | None

    @property
    def is_one_process(self) -> bool:
        """Whether nothing is to be shared out."""
        return self.processes == ONE and self.on is None

    @property
    def option(self) -> str:
        """The option that asks for more than this process."""
        return "--processes" if self.on is None else "--on"

    @property
    def words(self) -> str:
        """The options that say so."""
        on = "" if self.on is None else f" --on {self.on}"
        return f"--processes {self.processes}{on}"

    def shares(self, config: "CurriculumFile") -> bool:
        """Whether processes share the training of `config`: Ray may place its actors alone."""
        if self.processes == ONE and config.train.actors is not None:
            return False
        return not self.is_one_process

    def check(self, config: "CurriculumFile") -> None:
        """Raise ConfigurationError where so many processes can't share the training."""
        from aimbot_lab.training.processes.sharing import check_sharing

        check_sharing(config, self.processes.most, asked=self.words)


def launch_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` with the options of several processes, which it is given as `launch`."""

    @click.option(
        "--processes",
        type=SpanType(MAX_PROCESSES),
        default=ONE,
        show_default="1",
        help="Train in so many processes of this machine, each on rows of its own: the result is "
        "the same, to the bit. When one is lost, all begin again from the newest checkpoint. Not "
        "more than the training has shards (train.shards). MIN:MAX, with --on ray: as many as "
        "there is room for.",
    )
    @click.option(
        "--on",
        type=click.Choice(["ray"]),
        help="Where the processes run, or the actors of train.actors: ray has Ray place them, on "
        "the cluster of RAY_ADDRESS, else on this machine; needs pip install 'aimbot-lab[ray]'. "
        "[default: this machine]",
    )
    @wraps(command)
    def launched(processes: Span, on: str | None, **others: Any) -> Result:
        if processes.is_elastic and on is None:
            raise click.UsageError(f"--processes {processes}: MIN:MAX needs --on ray")
        return command(launch=LaunchOptions(processes, on), **others)

    return launched


class Prepared(NamedTuple):
    """A run that may begin, and what is said before."""

    request: "RunRequest"
    news: str = ""


def own_place(launch: LaunchOptions) -> "Place":
    """The place of this process among those of one training, if it was started as one of several.

    Raises UsageError where it is to start processes itself.
    """
    from aimbot_lab.training.processes.place import RANK, WORLD_SIZE, place_from_environment

    place = place_from_environment()
    if place.count > 1 and not launch.is_one_process:
        raise click.UsageError(
            f"{launch.option} can't be used in one of several processes ({RANK} and "
            f"{WORLD_SIZE} are set)"
        )
    return place


def launch_training(
    words: Sequence[str],
    launch: LaunchOptions,
    folder: "DataFolder",
    *,
    resumed: str | None = None,
    allow_env: Sequence[str] = (),
) -> int:
    """The exit code of `aimbot-lab` with `words`, in the processes that train one run.

    `resumed` is the run that goes on, if that is known already; `allow_env` names variables that
    its curriculum reads.
    """
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs

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
    launch: LaunchOptions,
    folder: "DataFolder",
    environment: Mapping[str, str],
    progress: Callable[[], object],
) -> int:
    from aimbot_lab.cluster.connection import ADDRESS, HeadLostError
    from aimbot_lab.cluster.training import Asked, Told, launch_on_ray
    from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs

    if ADDRESS in os.environ:
        _report(PORTS)
    streams = {1: sys.stdout, 2: sys.stderr}  # Ray's own words are kept from the first one

    def say(descriptor: int, data: bytes) -> None:
        streams[descriptor].buffer.write(data)
        streams[descriptor].flush()

    asked = Asked(words, environment, _own(FOR_THE_LEADER), launch.processes)
    try:
        return launch_on_ray(asked, Told(_report, say, progress))
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


def _newest_step(folder: "DataFolder", key: str, resumed: str | None) -> int | None:
    """The step of the newest checkpoint of the run that is trained; None without one."""
    from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder
    from aimbot_lab.tracking.runs.run_folder import CHECKPOINTS_NAME

    run = _begun_run(folder, key)
    run_id = resumed if run is None else run.run_id
    if run_id is None:
        return None
    return CheckpointFolder(folder.run_folder(run_id) / CHECKPOINTS_NAME).newest_step


def run_key() -> str | None:
    """Under which key this process's run is found again; None where no launcher of ours waits."""
    return os.environ.get(KEY)


def is_one_of_several(place: "Place") -> bool:
    """Whether a launcher has started this process for a training that others may share."""
    return place.count > 1 or run_key() is not None


def begun_run(folder: "DataFolder") -> "ResumableRun | None":
    """The run that this process's launcher has begun before, in other processes, if any."""
    key = run_key()
    return None if key is None else _begun_run(folder, key)


def _begun_run(folder: "DataFolder", key: str) -> "ResumableRun | None":
    from aimbot_lab.experiment.runs.resumable_runs import resumable_runs

    return next(iter(resumable_runs(folder, key=key)), None)


def take_part(
    place: "Place", prepare: Callable[[], Prepared], where: options.Place, *, as_json: bool
) -> int:
    """The exit code of this process, one of several that train the run which `prepare` gives.

    Only the leader shows, tracks and reports anything; of an error that it shows too, the others
    have the exit code alone.
    """
    from aimbot_lab.experiment.runs.crew import Crew
    from aimbot_lab.foundation.errors import LabError
    from aimbot_lab.training.processes.gloo import connect
    from aimbot_lab.training.processes.place import LostError

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


def _agreed(crew: "Crew", prepare: Callable[[], Prepared], where: options.Place) -> Prepared:
    """What all processes train; a launcher's workers are handed it by the one that leads."""
    from aimbot_lab.training.processes.sharing import check_sharing

    if run_key() is not None and not crew.exchange.place.leads:
        return Prepared(crew.take(where.folder))
    prepared = prepare()
    check_sharing(prepared.request.curriculum.config, crew.exchange.place.count)
    if run_key() is None:
        crew.compare(prepared.request)
    else:
        crew.give(prepared.request)
    return prepared


def _follow(request: "RunRequest", crew: "Crew") -> int:
    from aimbot_lab.experiment.runs.crew import follow_run

    asked: list[int] = []

    def receive(number: int, _frame: FrameType | None = None) -> None:
        asked.append(number)  # the leader says so, and aborts where it has to

    with handled_signals(receive):
        outcome = follow_run(request, crew, should_stop=lambda: bool(asked))
    return EXIT_CODES["KILLED"] if outcome.stopped else 0

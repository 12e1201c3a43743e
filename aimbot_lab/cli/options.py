"""Options that commands share, and what a shell completes of them (`aimbot-lab completion`).

A shell asks at each press of Tab, so nothing heavy is imported: names are read from folders.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.shell_completion import CompletionItem, get_completion_class

from aimbot_lab.cli.text import print_apart
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import allow_everything
from aimbot_lab.shipped.named_files import CURRICULUM, SWEEP, own_files, shipped_names
from aimbot_lab.tracking.data_folder import (
    ADDRESS_VARIABLE,
    DataFolder,
    locate_data_folder,
    without_password,
)
from aimbot_lab.tracking.tracker import (
    ALLOWED,
    BEST,
    LAST,
    checked_own_key,
    is_agent_name,
    is_own_training,
    run_filter,
)

if TYPE_CHECKING:
    from aimbot_lab.experiment.config.settings import CurriculumFile
    from aimbot_lab.foundation.world_type import WorldType

PROGRAM = "aimbot-lab"
VARIABLE = "_AIMBOT_LAB_COMPLETE"  # by which the program knows that a shell asks
SHELLS = ("bash", "zsh", "fish")
MAX_COMPLETIONS = 50
SHORT_ID = 12
_RUN_ID = re.compile(r"[0-9a-f]{32}")
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[Any]]]


@click.command(short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script with which SHELL completes commands, options, names, files and run ids.

    To keep it, add one of these lines to ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:

    \b
      eval "$(aimbot-lab completion bash)"
      eval "$(aimbot-lab completion zsh)"
      aimbot-lab completion fish | source

    \b
    Example:
      aimbot-lab completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())


def complete_files(*kinds: str) -> Completer:
    """Names of the user's own and the shipped files of these kinds, else whatever files match.

    A kind is "curriculum" or "sweep".
    """

    def complete(_context: Any, _parameter: Any, begun: str) -> list[CompletionItem[Any]]:
        names = [name for name in file_names(*kinds) if name.startswith(begun)]
        return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]

    return complete


def file_names(*kinds: str) -> list[str]:
    """The names of the user's own and the shipped files of these kinds, each once."""
    known = [kind for kind in (CURRICULUM, SWEEP) if kind.noun in kinds]
    own = [Path(file).stem for kind in known for file in own_files(kind)]
    return list(dict.fromkeys([*own, *(name for kind in known for name in shipped_names(kind))]))


def complete_runs(context: click.Context, _parameter: Any, begun: str) -> list[CompletionItem[Any]]:
    """Ids of runs in the data folder, newest first, and `latest`."""
    found: list[str] = []
    with suppress(LabError, OSError):
        folder, held = locate_data_folder(context.params.get("data_dir")), dict[str, float]()
        for place in (folder.artifacts, folder.runs):
            with suppress(OSError), os.scandir(place) as entries:
                held.update((one.name, one.stat().st_mtime) for one in entries)
        found = sorted(filter(_RUN_ID.fullmatch, held), key=lambda name: (-held[name], name))
    words = ["latest", *(run_id[:SHORT_ID] for run_id in found[:MAX_COMPLETIONS])]
    longer = [run_id for run_id in found if len(begun) > SHORT_ID]
    return [CompletionItem(word) for word in [*words, *longer] if word.startswith(begun)]


Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])
MAX_PROCESSES = 64
MAX_DIGITS = 18  # which Python reads at once

data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Folder of the runs and their files. [env: AIMBOT_LAB_DATA_DIR; default: .aimbot-lab "
    "in the project's folder]",
)


def _without_password(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | None:
    """The address, with its password in the environment alone.

    There this process and those that it starts find it; arguments are seen by everyone.
    """
    if value is None or (shown := without_password(value)) == value:
        return value
    os.environ[ADDRESS_VARIABLE] = value
    return shown


tracking_uri = click.option(
    "--tracking-uri",
    metavar="ADDRESS",
    callback=_without_password,
    help="An MLflow tracking server to use instead of the data folder. [env: MLFLOW_TRACKING_URI]",
)


class NumberRange(click.FloatRange):
    """Numbers between two bounds; click lets nan pass, which is on no side of a bound."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number that `value` says."""
        number: float = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class TemperatureType(click.ParamType[Any]):
    """A temperature that agents can play at."""

    name = "NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> Temperature:
        """The temperature that `value` says."""
        try:
            return Temperature(float(value))
        except ConfigurationError as error:
            self.fail(str(error).removeprefix("temperature "), param, ctx)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)


class AgentNameType(click.ParamType[str]):
    """The name of an agent of a run."""

    name = "NAME"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """The name, where an agent can bear it."""
        if not is_agent_name(value):
            self.fail(f"{value!r} must be {ALLOWED}.", param, ctx)
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """The names that every finished run has."""
        del ctx, param
        return [CompletionItem(name) for name in (BEST, LAST) if name.startswith(incomplete)]


class LateChoice(click.Choice[str]):
    """One of the names that `find` gives: worlds are looked up when they are asked for.

    So they load nothing for other commands.
    """

    def __init__(self, find: Callable[[], Iterable[str]]) -> None:
        self._find = find
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every name."""
        return tuple(self._find())


def target_names(first: Callable[["WorldType"], str]) -> tuple[str, ...]:
    """The targets of the world that is meant where none is named, `first` of it before others."""
    from aimbot_lab.worlds.registry import default_type

    world = default_type()
    return tuple(dict.fromkeys((first(world), *sorted(world.targets(None)))))


def world_names() -> Iterable[str]:
    """The names of all worlds."""
    from aimbot_lab.worlds.registry import world_types

    return world_types()


class TargetOption(click.Option):
    """An option whose default is the first of its `LateChoice`."""

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        """The target that is meant where none is given."""
        del ctx, call
        return cast("LateChoice", self.type).choices[0]


class StorePlace(NamedTuple):
    """Where the runs are, as the command line says it."""

    data_dir: Path | None
    tracking_uri: str | None

    @property
    def folder(self) -> DataFolder:
        """The data folder that counts. Raises ConfigurationError where it can't be one."""
        return locate_data_folder(self.data_dir)


def place(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` with the options of a place, which it is given as `place`."""

    @data_dir
    @tracking_uri
    @wraps(command)
    def placed(data_dir: Path | None, tracking_uri: str | None, **others: Any) -> Result:
        return command(place=StorePlace(data_dir, tracking_uri), **others)

    return placed


class Span(NamedTuple):
    """The least and the greatest number of processes."""

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
        """Raise ConfigurationError where this many processes can't share the training."""
        from aimbot_lab.training.checks import check_sharing

        check_sharing(config, self.processes.most, asked=self.words)


def launch(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` with the options of several processes, which it is given as `launch`."""

    @click.option(
        "--processes",
        type=SpanType(MAX_PROCESSES),
        default=ONE,
        show_default="1",
        help="Train in N processes on this machine, each on rows of its own; the result is the "
        "same, to the bit. If one is lost, all restart from the newest checkpoint. At most as "
        "many as the training has shards (train.shards). MIN:MAX, with --on ray: as many as "
        "there is room for.",
    )
    @click.option(
        "--on",
        type=click.Choice(["ray"]),
        help="Where to run the processes, or the actors of train.actors. ray: on the cluster of "
        "RAY_ADDRESS, else on this machine; needs pip install 'aimbot-lab[ray]'. [default: "
        "this machine]",
    )
    @wraps(command)
    def launched(processes: Span, on: str | None, **others: Any) -> Result:
        if processes.is_elastic and on is None:
            raise click.UsageError(f"--processes {processes}: MIN:MAX needs --on ray")
        return command(launch=LaunchOptions(processes, on), **others)

    return launched


def place_words(place: StorePlace) -> list[str]:
    """The options that say `place`, as another process takes them."""
    given = zip(("--data-dir", "--tracking-uri"), place, strict=True)
    return [word for name, value in given if value is not None for word in (name, str(value))]


def repeated(option: str, values: tuple[str, ...]) -> list[str]:
    """`option` with each of `values`, as another process takes them."""
    return [word for value in values for word in (option, value)]


def _trust(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    del ctx, param
    if value:
        allow_everything()


trust = click.option(
    "--trust",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_trust,
    help="Run code that the files name, such as the module of an environment. Without this, "
    "only code that a training in this data folder began with is run.",
)


def print_document(help_text: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """The option `--json`, with which nothing but the command's document is standard output."""

    def asked(ctx: click.Context, _parameter: click.Parameter, given: bool) -> bool:
        if given:
            print_apart(ctx)
        return given

    return click.option("--json", "as_json", is_flag=True, callback=asked, help=help_text)


as_json = print_document("Print one JSON document.")


def output(text: str, **given: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """The option `-o` of a file to write, which `text` describes."""
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), help=text, show_default=True, **given
    )


def number(
    name: str, default: int, bounds: tuple[int, int | None], text: str
) -> Callable[[Command], Command]:
    """The option `name` of a whole number within `bounds`."""
    kind = click.IntRange(*bounds)
    return click.option(name, default=default, show_default=True, type=kind, help=text)


def choice(name: str, choices: tuple[str, ...], text: str) -> Callable[[Command], Command]:
    """The option `name` of one of `choices`; the first one is meant where it is not given."""
    kind, usual = click.Choice(choices), choices[0]
    return click.option(name, default=usual, show_default=True, type=kind, help=text)


written = output("The file to write; an existing one is replaced. [default: stdout]")
overrides = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a value of the file, for example train.total_steps=100000; repeatable.",
)
allow_env = click.option(
    "--allow-env",
    metavar="NAME",
    multiple=True,
    help="Let the file read the environment variable NAME as ${oc.env:NAME}; the run keeps its "
    "value. Repeatable.",
)
filters = click.option(
    "--filter",
    "filters",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only runs with this name, experiment, status or tag; * matches any characters. "
    "Repeatable.",
)
tags = click.option(
    "--tag",
    "tags",
    metavar="KEY=VALUE",
    multiple=True,
    help="A tag of the run, for example why=baseline; repeatable.",
)
agent = click.option(
    "--agent",
    type=AgentNameType(),
    default=LAST,
    show_default=True,
    help="Which agent of the run: the last one, the best one (by win rate), or step-N, saved on "
    "request at step N.",
)
temperature = click.option(
    "--temperature",
    type=TemperatureType(),
    help="How actions are drawn: logits are divided by this, the standard deviation of "
    "continuous actions is multiplied by it. 1: as in training; 0: the likeliest action. "
    "[default: 1; 0 for algorithms that only rank actions]",
)
episodes = number("--episodes", 200, (1, 65536), "Episodes of each target and difficulty.")
max_steps = click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    help="Steps after which an unfinished episode is an error. [default: from the curriculum's "
    "evaluation, else twice the world's longest episode, or 30000 if that is unknown]",
)
seed = number("--seed", 1, (0, None), "Which episodes to play; no training uses them.")
size = click.option(
    "--size",
    type=click.IntRange(120, 2000),
    help="Side length of the picture in pixels. [default: 480; in a GIF or a grid 320]",
)
speed = click.option(
    "--speed",
    default=1.0,
    show_default=True,
    type=NumberRange(0.1, 20),
    help="Playback speed, as a multiple of real time.",
)


def parsed_tags(texts: tuple[str, ...]) -> dict[str, str]:
    """The tags of `KEY=VALUE` texts. Raises ConfigurationError if one is invalid."""
    tags = {}
    for text in texts:
        key, equals, value = text.partition("=")
        try:
            checked_own_key(key)
        except ValueError as error:
            raise ConfigurationError(f"--tag {text!r}: {error}") from error
        if not equals:
            raise ConfigurationError(f"--tag {text!r}: must be KEY=VALUE")
        tags[key] = value
    return tags


def named_runs(runs: tuple[str, ...], filters: tuple[str, ...], place: StorePlace) -> list[str]:
    """The runs that are named, and the ids of those that every filter takes, oldest first.

    Raises ConfigurationError where there are none.
    """
    from aimbot_lab.tracking.history import MAX_RUNS, matching_runs

    taken: list[str] = []
    if filters:
        wanted = run_filter(filters, with_trials=False)
        at: Any = {"tracking_uri": place.tracking_uri, "max_results": MAX_RUNS}
        fits = matching_runs(place.folder, wanted, **at)
        taken = [run.run_id for run in reversed(fits) if is_own_training(run)]
    if not (runs or taken):
        what = f"no run has {' and '.join(filters)}" if filters else "name a run, or a --filter"
        raise ConfigurationError(f"{what}; aimbot-lab runs lists them")
    return [*runs, *taken]

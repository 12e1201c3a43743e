"""The options of a training in several processes and on several machines."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.spans import ONE, Span, SpanType

if TYPE_CHECKING:
    from aimbot_lab.experiment.config.settings import CurriculumFile

Result = TypeVar("Result")
MAX_MACHINES = 64


class Machines(NamedTuple):
    """How many machines train together, and where they meet."""

    span: Span
    meet: str


class Spread(NamedTuple):
    """Over how many processes and machines a training is spread."""

    span: Span  # processes, of each machine
    machines: Machines | None
    patience_s: float
    on: str | None = None  # who places the processes, or the actors

    @property
    def processes(self) -> int:
        """At most, of each machine."""
        return self.span.most

    @property
    def is_one_process(self) -> bool:
        """Whether nothing is to be shared out."""
        return self.processes == 1 and self.machines is None and self.on is None

    def shares(self, config: "CurriculumFile") -> bool:
        """Whether processes share the training of `config`: Ray may place its actors alone."""
        if self.processes == 1 and config.train.actors is not None:
            return self.machines is not None
        return not self.is_one_process

    @property
    def spans(self) -> tuple[Span, Span]:
        """Processes of each machine, and machines."""
        return self.span, ONE if self.machines is None else self.machines.span

    @property
    def option(self) -> str:
        """The option that asks for more than this process."""
        if self.on is not None:
            return "--on"
        return "--processes" if self.machines is None else "--machines"

    @property
    def words(self) -> str:
        """The options that say so."""
        machines = "" if self.machines is None else f"--machines {self.machines.span} "
        on = "" if self.on is None else f" --on {self.on}"
        return f"{machines}--processes {self.span}{on}"


_patience = click.option(
    "--patience",
    type=options.NumberRange(1, 86_400),
    default=120.0,
    show_default=True,
    metavar="S",
    help="For how many seconds a silent process or machine of the training is waited for.",
)


def _check(processes: Span, machines: Span | None, *, on: str | None, meet: str | None) -> None:
    """Raise UsageError for options that don't go together."""
    if processes.is_elastic and on is None:
        raise click.UsageError(f"--processes {processes}: MIN:MAX needs --on ray")
    if on is not None and machines is not None:
        raise click.UsageError(f"--machines can't be used with --on {on}, which finds its own")
    if (machines is None) != (meet is None):
        one, other = ("--machines", "--meet") if meet is None else ("--meet", "--machines")
        raise click.UsageError(f"{one} needs {other} too: how many machines, where they meet")


def machine_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` with the options of processes and machines, which it is given as `spread`."""

    @options.processes
    @options.on_ray
    @click.option(
        "--machines",
        type=SpanType(MAX_MACHINES),
        help="Train on so many machines together: type the same command on each. With MIN:MAX it "
        "begins with MIN of them and takes in up to MAX.",
    )
    @click.option(
        "--meet",
        metavar="HOST:PORT",
        help="Where the --machines meet: a machine that all reach, and a free port. It leads: it "
        "has the run's folder, shows and tracks.",
    )
    @_patience
    @wraps(command)
    def placed(
        processes: Span,
        on: str | None,
        machines: Span | None,
        meet: str | None,
        patience: float,
        **others: Any,
    ) -> Result:
        _check(processes, machines, on=on, meet=meet)
        both = None if machines is None or meet is None else Machines(machines, meet)
        return command(spread=Spread(processes, both, patience, on), **others)

    return placed

"""The options of a training in several processes and on several machines."""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from aimbot_lab.cli import options

Result = TypeVar("Result")
MAX_MACHINES = 64


class MachinesType(click.ParamType["tuple[int, int]"]):
    """How many machines train: N, or MIN:MAX."""

    name = "N|MIN:MAX"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        """The fewest and the most."""
        if isinstance(value, tuple):
            return value
        fewest, _, most = value.partition(":")
        try:
            pair = int(fewest), int(most if ":" in value else fewest)
        except ValueError:
            self.fail(f"{value!r} is neither N nor MIN:MAX.", param, ctx)
        if not 1 <= pair[0] <= pair[1] <= MAX_MACHINES:
            self.fail(f"{value!r}: 1 <= MIN <= MAX <= {MAX_MACHINES} must hold.", param, ctx)
        return pair


class Machines(NamedTuple):
    """How many machines train together, and where they meet."""

    fewest: int
    most: int
    meet: str

    @property
    def words(self) -> str:
        """The option that says how many."""
        both = self.fewest if self.fewest == self.most else f"{self.fewest}:{self.most}"
        return f"--machines {both}"


class Spread(NamedTuple):
    """Over how many processes and machines a training is spread."""

    processes: int  # of each machine
    machines: Machines | None
    patience_s: float

    @property
    def is_one_process(self) -> bool:
        """Whether nothing is to be shared out."""
        return self.processes == 1 and self.machines is None

    @property
    def fewest(self) -> int:
        """Machines with which it begins."""
        return 1 if self.machines is None else self.machines.fewest

    @property
    def most(self) -> int:
        """Machines that it takes in."""
        return 1 if self.machines is None else self.machines.most

    @property
    def words(self) -> str:
        """The options that say so."""
        processes = f"--processes {self.processes}"
        return processes if self.machines is None else f"{self.machines.words} {processes}"


def machine_options(command: Callable[..., Result]) -> Callable[..., Result]:
    """`command` with the options of processes and machines, which it is given as `spread`."""

    @options.processes
    @click.option(
        "--machines",
        type=MachinesType(),
        help="Train on so many machines together: type the same command on each. With MIN:MAX it "
        "begins with MIN of them and takes in up to MAX.",
    )
    @click.option(
        "--meet",
        metavar="HOST:PORT",
        help="Where the --machines meet: a machine that all reach, and a free port. It leads: it "
        "has the run's folder, shows and tracks.",
    )
    @click.option(
        "--patience",
        type=click.FloatRange(min=1, max=86_400),
        default=120.0,
        show_default=True,
        metavar="S",
        help="For how many seconds a silent process or machine of the training is waited for.",
    )
    @wraps(command)
    def placed(
        processes: int,
        machines: tuple[int, int] | None,
        meet: str | None,
        patience: float,
        **others: Any,
    ) -> Result:
        if (machines is None) != (meet is None):
            one, other = ("--machines", "--meet") if meet is None else ("--meet", "--machines")
            raise click.UsageError(f"{one} needs {other} too: how many machines, where they meet")
        both = None if machines is None or meet is None else Machines(*machines, meet)
        return command(spread=Spread(processes, both, patience), **others)

    return placed

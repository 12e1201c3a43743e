"""The part Sweep: sweeps begun and stopped, trials as they end, and what was confirmed."""

import os
import signal
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, SWEEPS, Done, Feed, Key, Nothing, in_thread
from aimbot_lab.panel.server.parts.start import Holding
from aimbot_lab.panel.server.run_list import SweepLine
from aimbot_lab.panel.server.run_report import SHORT, command
from aimbot_lab.panel.server.trainings import OfferedSweep
from aimbot_lab.tracking.run_folder import living_folders

SECONDS = 2.0  # between two looks


@dataclass(frozen=True, config=STRICT)
class OfSweep:
    """A sweep, by a name that was listed."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, config=STRICT)
class SweepLines:
    """The sweeps there are."""

    sweeps: list[SweepLine]


@dataclass(frozen=True, config=STRICT)
class Offer:
    """What can be searched."""

    choices: list[OfferedSweep]


@dataclass(frozen=True, config=STRICT)
class Wanted:
    """A sweep that is to begin, or to go on where one of that name has begun."""

    key: Key
    name: Annotated[str, Field(min_length=1, max_length=200)]
    trials: Annotated[int, Field(ge=1, le=100_000)]
    workers: Annotated[int, Field(ge=1, le=1000)]


async def offer(session: Session, _: Nothing) -> Offer:
    """The sweeps of the package and of the folder, checked."""
    lab = session.lab

    def look() -> list[OfferedSweep]:
        lab.loader.need(*SWEEPS)
        return lab.offered_sweeps.look()

    return Offer(await in_thread(look))


async def begin(session: Session, wanted: Wanted) -> Done:
    """Search in a process of its own; a sweep that has begun goes on."""
    lab = session.lab
    options = {"name": wanted.name, "trials": wanted.trials, "workers": wanted.workers}
    words = ["sweep", "start", str(lab.offered_sweeps.path(wanted.key))]
    words += [word for key, value in options.items() for word in (f"--{key}", str(value))]

    def start() -> None:
        from aimbot_lab.sweep.document import load_sweep

        lab.loader.need(*SWEEPS)
        load_sweep(words[2], options)  # a fault is an answer of this request
        has_begun = any(one.name == wanted.name for one in lab.sweeps.look())
        more = ["--resume"] if has_begun else []
        lab.trainings.start([*words, *more], title=f"sweep {wanted.name}", sweep=wanted.name)

    await in_thread(start)
    await lab.started.look_now()
    return Done()


async def stop(session: Session, asked: OfSweep) -> Done:
    """End a sweep of this machine after its present updates, as one Ctrl-C does."""
    lab = session.lab

    def end() -> None:
        begun = lab.trainings.look()
        pids = [begun.pid] if begun and begun.alive and begun.sweep == asked.name else []
        if not pids:
            run = lab.sweeps.report(asked.name)["parent_run"]
            owners = [one.owner for one in living_folders(lab.data_folder) if one.run_id == run]
            pids = [one.pid for one in owners if one.pid is not None and one.is_on_this_machine()]
        if not pids:
            raise ConfigurationError(f"sweep {asked.name} does not run on this machine")
        os.kill(pids[0], signal.SIGTERM)

    await in_thread(end)
    return Done()


async def list_sweeps(session: Session, _: Nothing) -> Done:
    """Tell which sweeps there are, and what became of the one that was begun, from now on."""
    lab = session.lab
    session.follow("sweep", "holding", lab.started, Holding)

    async def look() -> list[SweepLine]:
        return await in_thread(lab.sweeps.look)

    feed = lab.kept("sweeps", lambda: Feed(look, seconds=SECONDS))
    session.follow("sweep", "sweeps", feed, SweepLines)
    return Done()


async def watch(session: Session, asked: OfSweep) -> Done:
    """Tell how a sweep stands, from now on."""
    lab = session.lab

    async def look() -> dict[str, Any]:
        found = await in_thread(lab.sweeps.report, asked.name)
        run = found["parent_run"]
        return {**found, "pictures": command(lab, "ui", run[:SHORT]) if run else ""}

    feed = lab.kept(f"sweep/{asked.name}", lambda: Feed(look, seconds=SECONDS))
    session.follow("sweep", "report", feed)
    return Done()


SWEEP = PagePart(
    name="sweep",
    asks={
        "list": Ask(Nothing, list_sweeps),
        "watch": Ask(OfSweep, watch),
        "offer": Ask(Nothing, offer, Offer),
        "begin": Ask(Wanted, begin),
        "stop": Ask(OfSweep, stop),
        "leave": leaving("sweep"),
    },
    tells={"sweeps": SweepLines, "report": dict[str, Any], "holding": Holding},
)

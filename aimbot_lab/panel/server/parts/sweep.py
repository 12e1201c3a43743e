"""The part Sweep: trials as they end, and the best so far. Read only."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Done, Feed, Nothing, in_thread
from aimbot_lab.panel.server.run_list import SweepLine

SECONDS = 2.0  # between two looks


@dataclass(frozen=True, config=STRICT)
class OfSweep:
    """A sweep, by a name that was listed."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, config=STRICT)
class SweepLines:
    """The sweeps there are."""

    sweeps: list[SweepLine]


async def list_sweeps(session: Session, _: Nothing) -> Done:
    """Tell which sweeps there are, from now on."""
    lab = session.lab

    async def look() -> list[SweepLine]:
        return await in_thread(lab.sweeps.look)

    feed = lab.kept("sweeps", lambda: Feed(look, seconds=SECONDS))
    session.follow("sweep", "sweeps", feed, SweepLines)
    return Done()


async def watch(session: Session, asked: OfSweep) -> Done:
    """Tell how a sweep stands, from now on."""
    lab = session.lab

    async def look() -> dict[str, Any]:
        return await in_thread(lab.sweeps.report, asked.name)

    feed = lab.kept(f"sweep/{asked.name}", lambda: Feed(look, seconds=SECONDS))
    session.follow("sweep", "report", feed)
    return Done()


SWEEP = PagePart(
    name="sweep",
    asks={
        "list": Ask(Nothing, list_sweeps),
        "watch": Ask(OfSweep, watch),
        "leave": leaving("sweep"),
    },
    tells={"sweeps": SweepLines, "report": dict[str, Any]},
)

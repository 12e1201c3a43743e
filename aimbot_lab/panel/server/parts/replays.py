"""The part Replays: recorded episodes, moment by moment."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import KERNELS, STRICT, Chosen, Key, Nothing, in_thread
from aimbot_lab.panel.server.parts.runs import OfRun, listing
from aimbot_lab.panel.server.replays import PlayedReplay, ReplayLine
from aimbot_lab.panel.server.run_list import Runs

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab


@dataclass(frozen=True, config=STRICT)
class From:
    """The moments of a replay from one on."""

    key: Key
    first: Annotated[int, Field(ge=0, le=2**21)]


@dataclass(frozen=True, config=STRICT)
class Lines:
    """Replays that can be chosen."""

    replays: list[ReplayLine]


@dataclass(frozen=True, config=STRICT)
class Portion:
    """Moments of a replay, beginning with `first`; none after the last."""

    first: int
    moments: list[dict[str, Any]]


async def of_folder(session: Session, _: Nothing) -> Lines:
    """The replays of the folder."""
    return Lines(await in_thread(session.lab.replays.of_folder))


async def of_run(session: Session, asked: OfRun) -> Lines:
    """The replays of a run."""
    return Lines(await in_thread(session.lab.replays.of_run, asked.run))


async def choose(session: Session, asked: Chosen) -> dict[str, Any]:
    """What a replay is of; it has been played once by then, and is what was recorded."""
    played = await in_thread(_played, session.lab, asked.key)
    session.state["replays"] = asked.key, played
    return played.about()


async def moments(session: Session, asked: From) -> Portion:
    """Some moments of a replay."""
    key, played = session.state.get("replays", ("", None))
    if key != asked.key or played is None:
        played = await in_thread(_played, session.lab, asked.key)
        session.state["replays"] = asked.key, played
    return Portion(asked.first, await in_thread(played.portion, asked.first))


def _played(lab: "Lab", key: str) -> PlayedReplay:
    lab.loader.need(*KERNELS)
    with lab.replays.path(key) as path:
        return PlayedReplay(path)


REPLAYS = PagePart(
    name="replays",
    asks={
        "list": listing("replays"),
        "of_folder": Ask(Nothing, of_folder, Lines),
        "of_run": Ask(OfRun, of_run, Lines),
        "choose": Ask(Chosen, choose, dict[str, Any]),
        "moments": Ask(From, moments, Portion),
        "leave": leaving("replays"),
    },
    tells={"runs": Runs},
)

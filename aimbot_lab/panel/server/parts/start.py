"""The part Start: what can be trained, and the training that was begun."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Nothing, in_thread
from aimbot_lab.panel.server.trainings import OfferedCurriculum, Started


@dataclass(frozen=True, config=STRICT)
class ChosenCurriculum:
    """A curriculum, by its key in the list."""

    key: str = Field(min_length=1, max_length=1000)


@dataclass(frozen=True, config=STRICT)
class OfferedCurricula:
    """What can be trained."""

    choices: list[OfferedCurriculum]
    here: str  # the folder that is looked into


@dataclass(frozen=True, config=STRICT)
class Holding:
    """The training that the page began last, if any."""

    started: Started | None


async def offer(session: Session, _: Nothing) -> OfferedCurricula:
    """The curricula, checked; and from now on what becomes of the training that was begun."""
    session.follow("start", "holding", session.lab.started, Holding)
    choices = await in_thread(session.lab.curricula.look)
    return OfferedCurricula(choices, str(session.lab.here))


async def begin(session: Session, chosen: ChosenCurriculum) -> Holding:
    """Train by a curriculum, in a process of its own."""
    lab = session.lab
    path = lab.curricula.path(chosen.key)
    title = next(one.title for one in await in_thread(lab.curricula.look) if one.key == chosen.key)
    started = await in_thread(lab.trainings.start, ["run", str(path)], title=title)
    await lab.started.look_now()
    return Holding(started)


START = PagePart(
    name="start",
    asks={
        "offer": Ask(Nothing, offer, OfferedCurricula),
        "leave": leaving("start"),
        "begin": Ask(ChosenCurriculum, begin, Holding),
    },
    tells={"holding": Holding},
)

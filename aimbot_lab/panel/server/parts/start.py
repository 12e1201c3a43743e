"""The part Start: what can be trained, and the training that was begun."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.curricula import Choice
from aimbot_lab.panel.server.loading import in_thread
from aimbot_lab.panel.server.messages import STRICT, Nothing
from aimbot_lab.panel.server.runs.trainings import Started
from aimbot_lab.panel.server.session import Ask, Part, Session, leaving


@dataclass(frozen=True, config=STRICT)
class Chosen:
    """A curriculum, by its key in the list."""

    key: str = Field(min_length=1, max_length=1000)


@dataclass(frozen=True, config=STRICT)
class Choices:
    """What can be trained."""

    choices: list[Choice]
    here: str  # the folder that is looked into


@dataclass(frozen=True, config=STRICT)
class Holding:
    """The training that the page began last, if any."""

    started: Started | None


async def offer(session: Session, _: Nothing) -> Choices:
    """The curricula, checked; and from now on what becomes of the training that was begun."""
    session.follow("start", "holding", session.lab.started, Holding)
    choices = await in_thread(session.lab.curricula.look)
    return Choices(choices, str(session.lab.here))


async def begin(session: Session, chosen: Chosen) -> Holding:
    """Train by a curriculum, in a process of its own."""
    lab = session.lab
    path = lab.curricula.path(chosen.key)
    title = next(one.title for one in await in_thread(lab.curricula.look) if one.key == chosen.key)
    started = await in_thread(lab.trainings.start, ["run", str(path)], title=title)
    await lab.started.look_now()
    return Holding(started)


START = Part(
    name="start",
    asks={
        "offer": Ask(Nothing, offer, Choices),
        "leave": leaving("start"),
        "begin": Ask(Chosen, begin, Holding),
    },
    tells={"holding": Holding},
)

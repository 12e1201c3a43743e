"""The part Training: runs, how one of them stands, and what is asked of it."""

from typing import Any

from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.messages import STRICT, Done, Nothing, RunId
from aimbot_lab.panel.server.part import Ask, Part
from aimbot_lab.panel.server.run_list import RunLine
from aimbot_lab.panel.server.session import Session


@dataclass(frozen=True, config=STRICT)
class OfRun:
    """A run."""

    run: RunId


@dataclass(frozen=True, config=STRICT)
class Runs:
    """The runs there are."""

    runs: list[RunLine]
    fault: str  # of the store; empty: none


async def list_runs(session: Session, _: Nothing) -> Done:
    """Tell which runs there are, from now on."""

    async def follow() -> None:
        async for lines in session.lab.runs.follow():
            session.show("training", "runs", Runs(lines, session.lab.run_list.fault))

    session.go_on("training", follow(), name="runs")
    return Done()


async def watch(session: Session, asked: OfRun) -> Done:
    """Tell how a run stands, from now on."""

    async def follow() -> None:
        async for document in session.lab.feed_of(asked.run).follow():
            session.show("training", "state", document)

    session.go_on("training", follow(), name="state")
    return Done()


async def leave(session: Session, _: Nothing) -> Done:
    """Tell nothing more."""
    session.stop("training", name="runs")
    session.stop("training", name="state")
    return Done()


async def stop(session: Session, asked: OfRun) -> Done:
    """Have a run stop, as by one Ctrl-C: it saves its agent and can be resumed."""
    await session.lab.live_run(asked.run).ask({"kind": "stop"})
    return Done()


TRAINING = Part(
    name="training",
    asks={
        "list": Ask(Nothing, list_runs),
        "watch": Ask(OfRun, watch),
        "leave": Ask(Nothing, leave),
        "stop": Ask(OfRun, stop),
    },
    tells={"runs": Runs, "state": dict[str, Any]},
)

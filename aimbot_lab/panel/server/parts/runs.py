"""What several parts say of runs: which there are, and which one is meant."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.panel.server.lab import Ask, Session
from aimbot_lab.panel.server.messages import STRICT, Done, Nothing, RunId
from aimbot_lab.panel.server.run_list import RunLine

AgentName = Annotated[str, Field(max_length=40, pattern=r"^(step-[0-9]+)?$")]


@dataclass(frozen=True, config=STRICT)
class OfRun:
    """A run."""

    run: RunId


@dataclass(frozen=True, config=STRICT)
class OfAgent:
    """A run, and which of the agents that it saved on request; empty: the newest."""

    run: RunId
    agent: AgentName


@dataclass(frozen=True, config=STRICT)
class Runs:
    """The runs there are; `fault` says why the store, which knows those that are over, is mute."""

    runs: list[RunLine]
    fault: str
    complete: bool  # whether the store has been asked


def listing(part: str) -> Ask:
    """The request of `part` to be told which runs there are, from then on."""

    async def list_runs(session: Session, _: Nothing) -> Done:
        session.follow(part, "runs", session.lab.runs, lambda listed: Runs(*listed))
        return Done()

    return Ask(Nothing, list_runs)

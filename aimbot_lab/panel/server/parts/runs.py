"""The part Runs: all of them, their names, tags and notes, curves side by side, and deletion.

And what several parts say of runs: which there are, and which one is meant.
"""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.experiment.runs.run_record import close_orphan_runs
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.lab import Ask, Lab, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STORE, STRICT, Done, Nothing, RunId, in_thread
from aimbot_lab.panel.server.run_list import Runs
from aimbot_lab.panel.server.run_report import Curve, curves_of
from aimbot_lab.tracking.history import delete_run, label_run, plan_deletion

AgentName = Annotated[str, Field(max_length=40, pattern=r"^(step-[0-9]+)?$")]
MAX_TAGS = 100  # of one change


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
class Labels:
    """What a run is called, and tags that change; one whose value is null goes."""

    run: RunId
    name: Annotated[str, Field(max_length=1000)]
    tags: Annotated[dict[str, str | None], Field(max_length=MAX_TAGS)]


@dataclass(frozen=True, config=STRICT)
class OfRuns:
    """Some runs."""

    runs: Annotated[list[RunId], Field(min_length=1, max_length=1000)]


@dataclass(frozen=True, config=STRICT)
class Curves:
    """A run's curves."""

    curves: list[Curve]


def listing(part: str) -> Ask:
    """The request of `part` to be told which runs there are, from then on."""

    async def list_runs(session: Session, _: Nothing) -> Done:
        session.follow(part, "runs", session.lab.runs)
        return Done()

    return Ask(Nothing, list_runs)


async def curves(session: Session, asked: OfRun) -> Curves:
    """The curves of a run as far as they go."""
    return Curves(await in_thread(lambda: [*curves_of(session.lab, asked.run)]))


async def label(session: Session, asked: Labels) -> Done:
    """Rename a run and change its tags; its note is the tag `note`."""
    lab = session.lab

    def change() -> None:
        lab.loader.need(*STORE)
        place, tags = lab.tracking_uri, asked.tags
        label_run(lab.data_folder, asked.run, name=asked.name, tags=tags, tracking_uri=place)

    await in_thread(change)
    return await _changed(lab)


async def delete(session: Session, asked: OfRuns) -> Done:
    """Delete runs for good, as `aimbot-lab delete` does; none where one of them still trains."""
    lab = session.lab

    def discard() -> None:
        lab.loader.need(*STORE)
        place = lab.tracking_uri
        for line in map(lab.run_list.line, asked.runs):
            if line is not None and line.state == "trains":
                raise ConfigurationError(f"{line.name or line.run_id[:12]} trains; stop it first")
        close_orphan_runs(lab.data_folder)
        for run in plan_deletion(asked.runs, lab.data_folder, tracking_uri=place).runs:
            delete_run(run, lab.data_folder, tracking_uri=place)

    await in_thread(discard)
    return await _changed(lab)


async def _changed(lab: Lab) -> Done:
    lab.run_list.ask_store_again()
    await lab.runs.look_now()
    return Done()


RUNS = PagePart(
    name="runs",
    asks={
        "list": listing("runs"),
        "leave": leaving("runs"),
        "curves": Ask(OfRun, curves, Curves),
        "label": Ask(Labels, label),
        "delete": Ask(OfRuns, delete),
    },
    tells={"runs": Runs},
)

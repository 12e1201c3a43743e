"""The part Training: runs, how one of them stands, and what is asked of it."""

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.curriculum.settings import MixWeights
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Done, RunId, in_thread, plain
from aimbot_lab.panel.server.parts.runs import OfRun, listing
from aimbot_lab.panel.server.run_list import Runs
from aimbot_lab.panel.server.run_report import KeptAgent, RunReport, keep_agent, report_feed

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Level = Annotated[int, Field(ge=1, le=5)]
Target = Annotated[str, Field(min_length=1, max_length=100)]
MAX_MOVES = 20
MAX_WEIGHTS = 100  # of one mix


@dataclass(frozen=True, config=STRICT)
class MoveLevels:
    """A change of the weights of a target's difficulties, as `aimbot-lab weights` makes it."""

    run: RunId
    target: Target
    moves: Annotated[list[tuple[Level, Share]], Field(max_length=MAX_MOVES)]
    lock: Annotated[list[Level], Field(max_length=MAX_MOVES)]
    unlock: Annotated[list[Level], Field(max_length=MAX_MOVES)]


@dataclass(frozen=True, config=STRICT)
class MoveTargets:
    """A change of the weights of a mix's targets."""

    run: RunId
    moves: Annotated[list[tuple[Target, Share]], Field(max_length=MAX_MOVES)]
    lock: Annotated[list[Target], Field(max_length=MAX_MOVES)]
    unlock: Annotated[list[Target], Field(max_length=MAX_MOVES)]


@dataclass(frozen=True, config=STRICT)
class Drag:
    """Where a slider was dragged to among those of a mix; no run hears of it."""

    weights: Annotated[list[Share], Field(min_length=1, max_length=MAX_WEIGHTS)]
    locked: Annotated[list[bool], Field(min_length=1, max_length=MAX_WEIGHTS)]
    place: Annotated[int, Field(ge=0, lt=MAX_WEIGHTS)]  # of the slider, from 0
    wanted: Share


@dataclass(frozen=True, config=STRICT)
class Dragged:
    """The weights with the dragged one as near to where it was dragged as the locks let it."""

    weights: list[float]


@dataclass(frozen=True, config=STRICT)
class Holds:
    """What the run has now, and from which step on."""

    step: int
    lesson: int  # from 1
    weights: list[float]
    locked: list[bool]


@dataclass(frozen=True, config=STRICT)
class Address:
    """Where a page is."""

    address: str


async def watch(session: Session, asked: OfRun) -> Done:
    """Tell how a run stands, and what it has come to, from now on."""
    lab = session.lab
    session.follow("training", "state", lab.feed_of(asked.run))
    session.follow("training", "report", report_feed(lab, asked.run))
    return Done()


async def save_agent(session: Session, asked: OfRun) -> KeptAgent:
    """Have a run that trains save its present agent, under a name of its own."""
    return await keep_agent(session.lab, asked.run)


async def stop(session: Session, asked: OfRun) -> Done:
    """Have a run stop, as by one Ctrl-C: it saves its agent and can be resumed."""
    await session.lab.live_run(asked.run).ask({"kind": "stop"})
    return Done()


async def drag(_session: Session, asked: Drag) -> Dragged:
    """Say how the other weights of a mix give way, by the law that the run moves them by."""
    keys = tuple(range(1, len(asked.weights) + 1))
    weights = MixWeights(keys, tuple(asked.weights), tuple(asked.locked))
    return Dragged(list(weights.drag(asked.place + 1, asked.wanted).weights))


async def move_levels(session: Session, asked: MoveLevels) -> Holds:
    """Move weights of difficulties, for the blocks that are drawn from then on."""
    return await _moved(session, asked.run, {"kind": "weights", **asdict(asked)})


async def move_targets(session: Session, asked: MoveTargets) -> Holds:
    """Move weights of targets, for the episodes that begin from then on."""
    return await _moved(session, asked.run, {"kind": "targets", **asdict(asked)})


async def _moved(session: Session, run: str, change: dict[str, Any]) -> Holds:
    live = session.lab.live_run(run)
    answer = await live.ask(change)
    held = Holds(answer["step"], answer["lesson"], answer["weights"], answer["locked"])
    live.hold(change.get("target", ""), plain(held))
    await session.lab.feed_of(run).look_now()
    return held


async def mlflow(session: Session, asked: OfRun) -> Address:
    """Where MLflow shows the run's curves; its page is started if need be."""
    return Address(await session.lab.mlflow.address_of(asked.run))


async def resume(session: Session, asked: OfRun) -> Done:
    """Have a run go on from its last checkpoint, in a process of its own."""
    lab = session.lab
    line = await in_thread(lab.run_list.line, asked.run)
    if line is None or not line.resumable:
        raise ConfigurationError("that run can't be resumed: it is over, or it trains")
    words = ["resume", line.run_id, *await in_thread(lab.more_steps, line.run_id)]
    title = line.name or line.run_id[:12]
    await in_thread(lab.trainings.start, words, title=title, run_id=line.run_id)
    await lab.started.look_now()
    return Done()


TRAINING = PagePart(
    name="training",
    asks={
        "list": listing("training"),
        "watch": Ask(OfRun, watch),
        "leave": leaving("training"),
        "save_agent": Ask(OfRun, save_agent, KeptAgent),
        "stop": Ask(OfRun, stop),
        "resume": Ask(OfRun, resume),
        "mlflow": Ask(OfRun, mlflow, Address),
        "drag": Ask(Drag, drag, Dragged),
        "weights": Ask(MoveLevels, move_levels, Holds),
        "targets": Ask(MoveTargets, move_targets, Holds),
    },
    tells={"runs": Runs, "state": dict[str, Any], "report": RunReport},
)

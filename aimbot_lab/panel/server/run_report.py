"""What a run has come to: outcome, lessons, cells, curves, commands, agents saved on request."""

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING

from pydantic import TypeAdapter
from pydantic import dataclasses as checked

from aimbot_lab.curriculum.current_lesson import Regression
from aimbot_lab.curriculum.reports import CellReport
from aimbot_lab.experiment.runs.result import NEXT_COMMANDS, RESULT_NAME
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.messages import AGENTS, STORE, STRICT, Feed, in_thread, read_document
from aimbot_lab.panel.server.run_list import RunLine, ShownLesson
from aimbot_lab.tracking.data_folder import locate_data_folder
from aimbot_lab.tracking.history import metric_histories, read_run
from aimbot_lab.tracking.tracker import CURRICULUM_TAG, MetricPoint

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab


SHORT = 12  # letters of a run's id, of which a few would do

LOOKS, PAUSE = 40, 0.25  # for the agent in the store, s between two of them

MAX_POINTS = 240  # of a curve
SECONDS = 5.0  # between two looks into the store
CURVES = (
    ("Win rate, fixed test episodes", names.EVAL_WIN_RATE),
    ("Win rate, training episodes", names.LEARNING_WIN_RATE),
    ("Reward of an episode, mean", names.EPISODE_RETURN),
)


def command(lab: "Lab", *words: str) -> str:
    """A line that does `words` with the runs that the panel shows."""
    return shlex.join(["aimbot-lab", *words, *_place(lab)])


def _place(lab: "Lab") -> list[str]:
    """The options without which another data folder, or another store, would be meant."""
    try:
        is_usual = locate_data_folder(None).root.resolve() == lab.data_folder.root.resolve()
    except LabError:
        is_usual = False
    words = [] if is_usual else ["--data-dir", str(lab.data_folder.root)]
    return [*words, *([] if lab.tracking_uri is None else ["--tracking-uri", lab.tracking_uri])]


@checked.dataclass(frozen=True, config=STRICT)
class KeptAgent:
    """An agent that a run has saved, and how to use it."""

    run: str
    name: str  # among the agents of the run
    step: int  # environment steps
    lesson: int  # from 1
    stored: bool  # whether it has reached the store; else it does so later
    evaluate: str  # the command


async def keep_agent(lab: "Lab", run_id: str) -> KeptAgent:
    """Have a run save its present agent, and wait a while until others find it.

    Raises ConfigurationError where it does not train or refuses, LabError where it is silent.
    """
    answer = await lab.live_run(run_id).ask({"kind": "keep_agent"})
    name = str(answer["name"])
    lab.run_list.note_saved(run_id, name)
    lab.run_list.ask_store_again()
    stored = False
    for _ in range(LOOKS):
        stored = await in_thread(_is_stored, lab, run_id, name)
        if stored:
            break
        await asyncio.sleep(PAUSE)
    words = "evaluate", run_id[:SHORT], "--agent", name
    return KeptAgent(
        run=run_id,
        name=name,
        step=answer["step"],
        lesson=answer["lesson"],
        stored=stored,
        evaluate=command(lab, *words),
    )


def _is_stored(lab: "Lab", run_id: str, name: str) -> bool:
    lab.loader.need(*STORE, *AGENTS)
    from aimbot_lab.experiment.runs.agents import fetch_agent_files

    try:
        fetch_agent_files(run_id, name, data_folder=lab.data_folder, uri=lab.tracking_uri)
    except LabError:
        return False
    return True


@dataclass(frozen=True)
class Curve:
    """A number of a run by its steps."""

    title: str
    is_rate: bool  # from 0 to 1
    steps: list[int]  # environment steps
    values: list[float]
    lower: list[float | None]  # ends of the 95 % intervals, where they are known
    upper: list[float | None]


@dataclass(frozen=True)
class ShownCommand:
    """What can be done with the run in a terminal."""

    what: str
    line: str


@dataclass(frozen=True)
class Result:
    """How a run ended, as far as the page shows it: a part of what `RunResult` keeps."""

    seed: int
    steps: int  # environment steps
    lessons: list[ShownLesson]
    cells: list[CellReport]  # of the last lesson
    regressions: list[Regression]
    has_wins: bool = True  # whether an episode could be won


@dataclass(frozen=True)
class RunReport:
    """A run, as far as its store knows it.

    `result` is what its artifact `result.json` says, which a run has once it is over.
    """

    run: str
    outcome: str = ""
    curriculum: str = ""
    seconds: float | None = None  # from start to end, pauses included
    training_seconds: float | None = None  # of these; what the terminal and the note say
    steps_per_second: float | None = None  # while it trained; of its last report, if not known
    result: Result | None = None
    curves: list[Curve] = field(default_factory=list)
    commands: list[ShownCommand] = field(default_factory=list)
    fault: str = ""  # of the store, or of `result.json`


def report_feed(lab: "Lab", run_id: str) -> Feed[RunReport]:
    """What a run has come to, looked up now and then while a page wants it."""
    final: list[tuple[RunLine | None, RunReport]] = []  # the last, until a resume changes the line

    async def look() -> RunReport:
        line = await in_thread(lab.run_list.line, run_id)
        if final and line is not None and line == final[0][0]:
            return replace(final[0][1], commands=[*_commands(lab, run_id)])
        try:
            found = await in_thread(report_of, lab, run_id)
        except LabError as error:
            return RunReport(run_id, fault=str(error))
        if found.result is not None and found.seconds is not None:
            final[:] = [(line, found)]
        return found

    return lab.kept(f"report/{run_id}", lambda: Feed(look, seconds=SECONDS))


def report_of(lab: "Lab", run_id: str) -> RunReport:
    """What the run of that id has come to. Raises LabError where the store does not know it."""
    lab.loader.need(*STORE)
    run = read_run(lab.data_folder, run_id, tracking_uri=lab.tracking_uri)
    result, fault = result_of(lab, run_id)
    trained, speed = run.training_seconds, run.metrics.get(names.STEPS_PER_SECOND)
    if result is not None and trained:
        speed = result.steps / trained
    return RunReport(
        run=run_id,
        outcome=run.tags.get("lab.outcome", ""),
        curriculum=run.tags.get(CURRICULUM_TAG, ""),
        seconds=run.seconds,
        training_seconds=trained,
        steps_per_second=speed if speed is not None and isfinite(speed) else None,
        result=result,
        curves=[*curves_of(lab, run_id)],
        commands=[*_commands(lab, run_id)],
        fault=fault,
    )


def result_of(lab: "Lab", run_id: str) -> tuple[Result | None, str]:
    """What the run has kept of its end, if it has; and what is wrong with that."""
    from aimbot_lab.tracking.history import download_artifact

    uri = lab.tracking_uri
    try:
        place = download_artifact(lab.data_folder, run_id, name=RESULT_NAME, tracking_uri=uri)
    except LabError:  # it is not over
        return None, ""
    try:
        return read_document(place, _RESULT), ""
    except LabError as error:
        return None, str(error)


def curves_of(lab: "Lab", run_id: str) -> Iterator[Curve]:
    """Its curves that have two points or more. Raises LabError where the store can't be read."""
    lab.loader.need(*STORE)
    bounds = names.lower_bound, names.upper_bound
    keys = [one for _, key in CURVES for one in (key, *(bound(key) for bound in bounds))]
    place = lab.tracking_uri
    found = metric_histories(lab.data_folder, run_id, keys=keys, tracking_uri=place)
    known = {
        key: dict(thinned([point for point in points if isfinite(point.value)]))
        for key, points in found.items()
    }
    for title, key in CURVES:
        if len(values := known[key]) < 2:
            continue
        is_rate = key != names.EPISODE_RETURN
        ends = [known[bound(key)] for bound in bounds]
        lower, upper = ([end.get(step) for step in values] for end in ends)
        yield Curve(title, is_rate, [*values], [*values.values()], lower, upper)


def thinned(points: Sequence[MetricPoint]) -> list[tuple[int, float]]:
    """`points` by rising step, neighbours averaged so that MAX_POINTS at most are left."""
    size = -(-len(points) // MAX_POINTS) if points else 1
    groups = (points[start : start + size] for start in range(0, len(points), size))
    return [(group[-1].step, sum(one.value for one in group) / len(group)) for group in groups]


def _commands(lab: "Lab", run_id: str) -> Iterator[ShownCommand]:
    short = run_id[:SHORT]
    for purpose, (word, *more) in NEXT_COMMANDS.items():
        yield ShownCommand(purpose, command(lab, word, short, *more))
    if other := lab.run_list.another(run_id):
        words = "compare", short, other[:SHORT]
        yield ShownCommand("Compare it with another run", command(lab, *words))


_RESULT = TypeAdapter(Result)

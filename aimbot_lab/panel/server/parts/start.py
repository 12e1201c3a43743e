"""The part Start: what can be trained, with which weights, and the training that was begun."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.curriculum.settings import Lesson, MixWeights
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Chosen, Key, Nothing, in_thread
from aimbot_lab.panel.server.parts.training import MAX_WEIGHTS, Drag, Dragged, Share, Target, drag
from aimbot_lab.panel.server.trainings import OfferedCurriculum, Started
from aimbot_lab.tracking.tracker import checked_run_name
from aimbot_lab.worlds.registry import type_of

ShareList = Annotated[list[Share], Field(max_length=MAX_WEIGHTS)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, config=STRICT)
class OfferedCurricula:
    """What can be trained."""

    choices: list[OfferedCurriculum]
    here: str  # the folder that is looked into


@dataclass(frozen=True, config=STRICT)
class LessonMix:
    """How often a lesson draws its targets and their difficulties."""

    name: str
    targets: dict[Target, Share]  # they sum to 1
    difficulty: dict[Target, ShareList]  # by target, easiest first; each sums to 1


@dataclass(frozen=True, config=STRICT)
class Sheet:
    """What a training is started with."""

    key: Key
    name: Annotated[str, Field(max_length=1000)]
    seed: Annotated[int, Field(ge=0)]
    total_steps: Annotated[int, Field(ge=1)]
    lessons: list[LessonMix]
    rewards: dict[str, Finite]  # weights by term; empty where the world has none


@dataclass(frozen=True, config=STRICT)
class Holding:
    """The training that the page began last, if any."""

    started: Started | None


async def offer(session: Session, _: Nothing) -> OfferedCurricula:
    """The curricula, checked; and from now on what becomes of the training that was begun."""
    session.follow("start", "holding", session.lab.started, Holding)
    choices = await in_thread(session.lab.curricula.look)
    return OfferedCurricula(choices, str(session.lab.here))


async def sheet(session: Session, chosen: Chosen) -> Sheet:
    """What a curriculum says of what can be chosen before its training."""
    return await in_thread(sheet_of, chosen.key, session.lab.curricula.path(chosen.key))


async def begin(session: Session, wanted: Sheet) -> Holding:
    """Train by a curriculum in a process of its own, with what `wanted` has otherwise."""
    lab = session.lab
    path = lab.curricula.path(wanted.key)
    title = next(one.title for one in await in_thread(lab.curricula.look) if one.key == wanted.key)

    def start() -> Started:
        return lab.trainings.start(["run", str(path), *changes(path, wanted)], title=title)

    started = await in_thread(start)
    await lab.started.look_now()
    return Holding(started)


def sheet_of(key: str, path: Path) -> Sheet:
    """The sheet of the curriculum at `path` as its file has it. Raises ConfigurationError."""
    loaded = load_curriculum(path)
    config = loaded.config
    rewards: Any = getattr(config.env, "rewards", None)
    terms = asdict(rewards) if is_dataclass(rewards) and not isinstance(rewards, type) else {}
    levels = type_of(config.env).targets(config.env)
    return Sheet(
        key,
        loaded.name,
        config.seed,
        config.train.total_steps,
        [_mix(lesson, levels) for lesson in config.lessons],
        {term: float(weight) for term, weight in terms.items() if isinstance(weight, int | float)},
    )


def _mix(lesson: Lesson, levels: Mapping[str, int]) -> LessonMix:
    targets = MixWeights.normalised(lesson.targets) if lesson.targets else None
    mixes = {
        one: lesson.difficulty.get(one) or (1.0,) * levels.get(one, 0) for one in lesson.targets
    }
    return LessonMix(
        lesson.name,
        {} if targets is None else dict(zip(lesson.targets, targets.weights, strict=True)),
        {
            target: [*MixWeights.of_difficulties(weights).weights]
            for target, weights in mixes.items()
            if len(weights) > 1
        },
    )


def changes(path: Path, wanted: Sheet) -> list[str]:
    """The options of `aimbot-lab run` that make the sheet of the file at `path` that of `wanted`.

    Raises ConfigurationError, as `run` would, where they are refused.
    """
    given = sheet_of(wanted.key, path)
    words = [] if wanted.name == given.name else ["--name", checked_run_name(wanted.name)]
    sets = [*_sets(given, wanted)]
    load_curriculum(path, sets)
    return [*words, *(word for one in sets for word in ("--set", one))]


def _sets(given: Sheet, wanted: Sheet) -> Iterator[str]:
    if wanted.seed != given.seed:
        yield f"seed={wanted.seed}"
    if wanted.total_steps != given.total_steps:
        yield f"train.total_steps={wanted.total_steps}"
    for term, weight in wanted.rewards.items():
        if weight != given.rewards.get(term):
            yield f"env.rewards.{term}={weight!r}"
    for number, (old, new) in enumerate(zip(given.lessons, wanted.lessons, strict=False)):
        if new.targets != old.targets:
            yield f"lessons[{number}].targets={json.dumps(new.targets)}"
        moved = {key: one for key, one in new.difficulty.items() if one != old.difficulty.get(key)}
        if moved:  # it is merged into what the file has
            yield f"lessons[{number}].difficulty={json.dumps(moved)}"


START = PagePart(
    name="start",
    asks={
        "offer": Ask(Nothing, offer, OfferedCurricula),
        "leave": leaving("start"),
        "sheet": Ask(Chosen, sheet, Sheet),
        "drag": Ask(Drag, drag, Dragged),
        "begin": Ask(Sheet, begin, Holding),
    },
    tells={"holding": Holding},
)

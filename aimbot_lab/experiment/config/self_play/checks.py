"""What self-play needs of the world, the algorithm and the lessons."""

from collections.abc import Iterator, Sequence
from typing import Any

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.training.algorithms.registry import ALGORITHMS, algorithm_of
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import type_of, world_types

SECTION = "self_play"
RATIO = "play_against_latest_model_ratio"


def self_play_env(env: WorldSettings, self_play: SelfPlaySettings | None) -> WorldSettings:
    """The world as it is trained in under `self_play`; `env` where that is None or impossible."""
    world = type_of(env)
    if self_play is None or not world.self_play_targets:
        return env
    found: Any = world.self_play_settings(env, self_play.play_against_latest_model_ratio)
    learned: WorldSettings = found
    return learned


def self_play_diagnostics(
    lessons: Sequence[Lesson | None] | None,
    env: WorldSettings | None,
    train: TrainSettings | None,
    self_play: SelfPlaySettings | None,
) -> Iterator[Diagnostic]:
    """Why there can be no such self-play; a part that is None is wrong by itself, or left out."""
    if self_play is None:
        yield from _running_ratings(lessons or ())
    if self_play is None or env is None:
        return
    world = type_of(env)
    if not world.self_play_targets:
        yield Diagnostic((SECTION,), f"needs {_worlds_with_self_play()} (got {env.world})")
        return
    if train is not None and not algorithm_of(train).self_play:
        able = [name for name, one in ALGORITHMS.own.items() if one.self_play]
        what = f"must be one of {', '.join(able)} under {SECTION} (got {train.algo})"
        yield Diagnostic(("train", "algo"), what)
    if train is not None and train.actors is not None:
        yield Diagnostic(("train", "actors"), f"must be left out under {SECTION}")
    if world.rows(self_play_env(env, self_play)) < 2 * env.num_envs:
        return
    for number, lesson in enumerate(lessons or ()):
        others = [] if lesson is None else _others(lesson, world)
        if others:
            what = (
                f"leaves no match for {', '.join(others)} of lessons.{number}: all {env.num_envs} "
                "are mirrored"
            )
            yield Diagnostic((SECTION, RATIO), what)
            return


def _running_ratings(lessons: Sequence[Lesson | None]) -> Iterator[Diagnostic]:
    """Lessons that ask for a rating which nobody keeps."""
    for number, lesson in enumerate(lessons):
        criteria = None if lesson is None else lesson.completion_criteria
        if criteria is not None and criteria.by_running_rating:
            path = ("lessons", number, "completion_criteria", "measure")
            what = f"elo under rule: ml-agents is of self-play: needs the section {SECTION}"
            yield Diagnostic(path, what)


def _others(lesson: Lesson, world: WorldType) -> list[str]:
    """Targets of `lesson` that mirrored matches are not."""
    first = world.self_play_targets[0]
    return [name for name, weight in lesson.targets.items() if weight > 0 and name != first]


def _worlds_with_self_play() -> str:
    able = [name for name, kind in world_types().items() if kind.self_play_targets]
    return " or ".join(f"env.world: {name}" for name in able)

"""What variants learn: a target in all its difficulties, or a task with a name of its own."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aimbot_lab.bench.ablation.task_names import DUEL, OWN_TASKS, RECALL, STALE
from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.shipped.named_files import CURRICULUM, SHIPPED
from aimbot_lab.training.settings import NetworkSettings, SamplesSettings, TrainSettings
from aimbot_lab.worlds.registry import default_type, settings_with

USUAL_THRESHOLD = 0.7
USUAL_STEPS = 4_000_000
N_STEPS = 64
OF_RECALL = ("memory", "bins")  # its variants, where none are asked for
OF_DUEL = ("bins", "units", "target linear", "target attention", "memory")
OF_STALE = ("bins", "dual clip", "dual clip 1.5")
STALE_THRESHOLD = 0.4
STALE_TRAIN: dict[str, Any] = {
    "samples": SamplesSettings(keep=16),
    "learning_rate": 3e-3,
    "n_epochs": 2,
}
"""Samples so old and steps so long that ratios leave 1.5; at the usual settings none does."""


@dataclass(frozen=True)
class Task:
    """A world, what is learned in it, and with which settings beside the switches."""

    name: str
    env: WorldSettings
    lesson: Lesson
    train: TrainSettings
    variants: tuple[str, ...] = ()  # that are compared where none are asked for; empty: all
    steps: int = USUAL_STEPS  # after which a training has failed, where none are named
    pace: str | None = None  # the variant that learns first: others take as many steps as it


def task_names(world: WorldType | None = None) -> tuple[str, ...]:
    """The names of all tasks, the one that is meant where none is named first."""
    world = world or default_type()
    return tuple(dict.fromkeys((world.hardest_target(), *sorted(world.targets(None)), *OWN_TASKS)))


def task_of(
    name: str, *, threshold: float | None = None, num_envs: int = 512, n_steps: int = N_STEPS
) -> Task:
    """The task of that name; its training ends once a win rate above `threshold` is proven."""
    if name == RECALL:
        file = SHIPPED / CURRICULUM.folder / f"{RECALL}.yaml"
        task = _of_file(file, RECALL, threshold, num_envs)
        return replace(task, variants=OF_RECALL, pace=OF_RECALL[0])
    if name == DUEL:
        file = Path(__file__).parent / f"{DUEL}.yaml"
        return replace(_of_file(file, DUEL, threshold, num_envs), variants=OF_DUEL)
    target = default_type().hardest_target() if name == STALE else name
    if threshold is None and name == STALE:
        threshold = STALE_THRESHOLD
    task = Task(
        name,
        env=settings_with(num_envs=num_envs, **_with_units()),
        lesson=Lesson(name=target, targets={target: 1.0}, completion_criteria=_criteria(threshold)),
        train=_train(num_envs, n_steps),
    )
    if name != STALE:
        return task
    return replace(task, train=replace(task.train, **STALE_TRAIN), variants=OF_STALE)


def _with_units() -> dict[str, object]:
    """That all variants observe units, where the world can show them."""
    observation = getattr(settings_with(), "observation", None)
    return {} if observation is None else {"observation": replace(observation, units=True)}


def _criteria(threshold: float | None) -> CompletionCriteria:
    wanted = USUAL_THRESHOLD if threshold is None else threshold
    return CompletionCriteria(threshold=wanted, min_lesson_length=500)


def _train(num_envs: int, n_steps: int) -> TrainSettings:
    """The settings of the shipped curricula.

    But for the entropy bonus, which is the default: theirs is for bins, and it would widen a
    Gaussian without end.
    """
    return TrainSettings(
        algo="hybrid_ppo",
        n_steps=n_steps,
        batch_size=num_envs * n_steps // 8,
        learning_rate=1e-3,
        network=NetworkSettings(layers=(64, 64), activation="relu"),
    )


def _of_file(file: Path, name: str, threshold: float | None, num_envs: int) -> Task:
    """The last lesson of a curriculum, in as many rows as are asked for."""
    config = load_curriculum(file).config
    lesson = config.lessons[-1]
    if threshold is not None:
        lesson = replace(lesson, completion_criteria=_criteria(threshold))
    env: Any = config.env
    env, train = replace(env, num_envs=num_envs), config.train
    train = replace(train, batch_size=min(train.batch_size, num_envs * train.n_steps))
    return Task(name, env, lesson, train, steps=train.total_steps)

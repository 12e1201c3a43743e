"""What variants learn: a target of the world in all its difficulties, or what needs a memory."""

from dataclasses import dataclass, replace
from typing import Any

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.shipped.named_files import CURRICULUM, SHIPPED
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.worlds.registry import default_type, settings_with

RECALL = "recall"  # the task of the shipped curriculum of that name
USUAL_THRESHOLD = 0.7
N_STEPS = 64
OF_RECALL = ("bins", "memory")  # its variants, where none are asked for


@dataclass(frozen=True)
class Task:
    """A world, what is learned in it, and with which settings beside the switches."""

    name: str
    env: WorldSettings
    lesson: Lesson
    train: TrainSettings
    variants: tuple[str, ...] = ()  # that are compared where none are asked for; empty: all


def task_names(world: WorldType | None = None) -> tuple[str, ...]:
    """The names of all tasks, the one that is meant where none is named first."""
    world = world or default_type()
    return tuple(dict.fromkeys((world.hardest_target(), *sorted(world.targets(None)), RECALL)))


def task_of(
    name: str, *, threshold: float | None = None, num_envs: int = 512, n_steps: int = N_STEPS
) -> Task:
    """The task of that name; its training ends once a win rate above `threshold` is proven."""
    if name == RECALL:
        return _recall(threshold, num_envs)
    return Task(
        name,
        env=settings_with(num_envs=num_envs, **_with_units()),
        lesson=Lesson(name=name, targets={name: 1.0}, completion_criteria=_criteria(threshold)),
        train=_train(num_envs, n_steps),
    )


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


def _recall(threshold: float | None, num_envs: int) -> Task:
    """The shipped curriculum, whose last lesson is learned."""
    file = SHIPPED / CURRICULUM.folder / f"{RECALL}.yaml"
    config = load_curriculum(file).config
    lesson = config.lessons[-1]
    if threshold is not None:
        lesson = replace(lesson, completion_criteria=_criteria(threshold))
    env: Any = config.env
    env = replace(env, num_envs=num_envs)
    return Task(RECALL, env, lesson, config.train, variants=OF_RECALL)

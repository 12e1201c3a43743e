"""Checks across the sections of a curriculum."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isqrt
from types import MappingProxyType

from aimbot_lab.curriculum.settings import Lesson, chain_faults
from aimbot_lab.experiment.config.diagnostics import Diagnostic
from aimbot_lab.experiment.config.key_path import KeyPath, shown_value
from aimbot_lab.experiment.config.keys import advice
from aimbot_lab.experiment.config.parameter_checks import (
    environment_diagnostics,
    lesson_parameter_diagnostics,
)
from aimbot_lab.experiment.config.parameter_lessons import Parameters
from aimbot_lab.training.algorithms.update_cost import MAX_MULTIPLY_ADDS, MAX_WEIGHTS, update_cost
from aimbot_lab.training.settings import ONE_CHOICE, TrainSettings
from aimbot_lab.worlds.arena.scenario import DIFFICULTIES
from aimbot_lab.worlds.arena.settings import ArenaSettings

TRAINABLE_TARGETS: Mapping[str, int] = MappingProxyType(
    {target: DIFFICULTIES[target] for target in ("free", "goto", "attack")}
)
"""Targets that a lesson may mix, each with its number of difficulties."""

MAX_ROLLOUT_STEPS = 2**24
MAX_REWARD = 1e12  # that a learner is given; its square is summed in 32 bits


def cross_section_diagnostics(
    lessons: Sequence[Lesson], *, env: ArenaSettings, parameters: Parameters, train: TrainSettings
) -> Iterator[Diagnostic]:
    """Diagnostics about several sections together."""
    yield from lesson_diagnostics(lessons, env)
    yield from environment_diagnostics(lessons, parameters, env)
    yield from rollout_diagnostics(env, train)
    yield from cost_diagnostics(env, train)
    yield from aim_diagnostics(env, train)
    yield from option_diagnostics(train)


def lesson_diagnostics(
    lessons: Sequence[Lesson | None] | None, env: ArenaSettings | None
) -> Iterator[Diagnostic]:
    """What is wrong with the lessons together and in `env`.

    A part that is None is invalid by itself and not checked further.
    """
    if lessons is None:
        return
    for path, what in chain_faults(lessons):
        yield Diagnostic(("lessons", *path), what)
    for number, lesson in enumerate(lessons):
        if lesson is not None:
            here: KeyPath = ("lessons", number)
            yield from _mix_diagnostics(lesson, here)
            yield from lesson_parameter_diagnostics(lesson.parameters, env, (*here, "parameters"))


def rollout_diagnostics(
    env: ArenaSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """What is wrong with the steps between two updates, where neither part is None."""
    if env is None or train is None:
        return
    steps = env.num_envs * train.n_steps
    product = f"env.num_envs * train.n_steps = {steps}"
    if _is_too_large(env, train):
        what = f"is too large: {product} must be at most {MAX_ROLLOUT_STEPS}"
        yield Diagnostic(("train", "n_steps"), what)
    elif steps % train.batch_size and train.algo not in ONE_CHOICE:
        nearest = nearest_divisor(steps, train.batch_size)
        got = f"got {train.batch_size}; nearest that does: {nearest}"
        yield Diagnostic(("train", "batch_size"), f"must divide {product} ({got})")


def _is_too_large(env: ArenaSettings, train: TrainSettings) -> bool:
    return env.num_envs * train.n_steps > MAX_ROLLOUT_STEPS


def cost_diagnostics(
    env: ArenaSettings | None, train: TrainSettings | None
) -> Iterator[Diagnostic]:
    """What no update could compute in reasonable time or numbers, where neither part is None."""
    if env is None or train is None:
        return
    cost = update_cost(train, env)
    if cost.weights > MAX_WEIGHTS:
        what = f"must have at most {MAX_WEIGHTS:,} weights between them (got {cost.weights:,})"
        yield Diagnostic(("train", "network", "layers"), what)
    elif cost.multiply_adds > MAX_MULTIPLY_ADDS and not _is_too_large(env, train):
        what = (
            f"is too much work: an update would take {cost.multiply_adds:.1e} multiply-adds, "
            f"must be at most {MAX_MULTIPLY_ADDS:.0e}"
        )
        yield Diagnostic(("train", "n_epochs"), what)
    largest = max(map(abs, asdict(env.rewards).values()))
    if train.reward_scale != "running" and largest * train.reward_scale > MAX_REWARD:
        what = (
            f"times the largest of env.rewards, {largest:g}, must be at most {MAX_REWARD:g}, as "
            f"updates compute with 32 bits (got {train.reward_scale:g})"
        )
        yield Diagnostic(("train", "reward_scale"), what)


def aim_diagnostics(env: ArenaSettings | None, train: TrainSettings | None) -> Iterator[Diagnostic]:
    """Whether the agent aims farther than the arena lets it, where neither part is None."""
    if env is None or train is None or train.aim == "hybrid":
        return
    farthest = max(train.aim_bins, key=abs)
    if abs(farthest) > env.mouse_limit:
        what = f"must not go beyond env.mouse_limit, {env.mouse_limit:g} (got {farthest:g})"
        yield Diagnostic(("train", "aim_bins"), what)


def option_diagnostics(train: TrainSettings | None) -> Iterator[Diagnostic]:
    """What the algorithm does not take, where `train` is not None."""
    if train is None or _is_plain_ppo(train):
        return  # which spares most checks the loading of torch
    from aimbot_lab.training.algorithms.options import settings_faults

    for key, option, what, known in settings_faults(train):
        path: KeyPath = ("train", key) if option is None else ("train", key, option)
        if known and option is not None:
            yield Diagnostic(path, f"{what} ({advice(option, known)})", about_key=True)
        elif what.startswith("must be"):
            yield Diagnostic(path, f"{what} (got {shown_value(train.options[str(option)])})")
        else:
            yield Diagnostic(path, what)


def _is_plain_ppo(train: TrainSettings) -> bool:
    """Whether nothing is asked of PPO, or of ours, that a class might not take."""
    if train.algo == "hybrid_ppo":
        return not train.options and train.engine != "fused"
    switches = train.aim, train.masks, train.objective, train.dual_clip, train.engine
    usual = ("bins", False, "joint", None, "auto")
    return train.algo == "ppo" and not train.options and switches == usual


def _mix_diagnostics(lesson: Lesson, path: KeyPath) -> Iterator[Diagnostic]:
    for target in lesson.targets:
        if target not in TRAINABLE_TARGETS:
            what = f"unknown target ({advice(target, TRAINABLE_TARGETS)})"
            yield Diagnostic((*path, "targets", target), what, about_key=True)
    for target, weights in lesson.difficulty.items():
        count = TRAINABLE_TARGETS.get(target)
        if count == 0:
            yield Diagnostic(
                (*path, "difficulty", target), f"{target} has no difficulties: leave it out"
            )
        elif count is not None and len(weights) != count:
            what = f"must hold {count} weights, one for each difficulty (got {len(weights)})"
            yield Diagnostic((*path, "difficulty", target), what)


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number`, 1 excepted, that is nearest to `wanted`."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    divisors = {*small, *(number // divisor for divisor in small)} - {1}
    return min(divisors, key=lambda divisor: (abs(divisor - wanted), divisor))

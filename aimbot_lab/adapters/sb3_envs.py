"""A world for stable-baselines3, made from keywords: with a target, ready to learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from aimbot_lab.adapters.registered_envs import GivenSettings, world_settings, world_with
from aimbot_lab.adapters.sb3 import RewardScale, WorldVecEnv
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.registry import spec_of

Targets = str | Mapping[str, float]  # one target, or a mix of them by weight
Difficulty = int | Sequence[float] | None  # one of 1 to 5, a weight for each, or all alike


def make_vec_env(
    target: Targets,
    *,
    num_envs: int = 512,
    difficulty: Difficulty = None,
    seed: int = 0,
    settings: GivenSettings | None = None,
    aim_bins: Sequence[float] | None = None,
    reward_scale: float | RewardScale = 1.0,
    **fields: Any,
) -> WorldVecEnv:
    """`num_envs` rows of a world with `target`: one of its targets, or {target: weight}.

    The world is the arena, or that of `settings` or `world=NAME`. `difficulty` holds for every
    target that has difficulties. `settings` are the world's or a mapping of their fields, and any
    field can be given by keyword. Raises ConfigurationError for what the world does not have.
    """
    chosen = world_settings(settings, {**fields, "num_envs": num_envs})
    scenario = _scenario(spec_of(chosen).difficulties, target, difficulty)
    world = world_with(chosen, scenario)
    return WorldVecEnv(world, aim_bins, seed=seed, reward_scale=reward_scale)


def _scenario(known: Mapping[str, int], target: Targets, difficulty: Difficulty) -> Scenario:
    targets = {target: 1.0} if isinstance(target, str) else dict(target)
    levels = {name: known.get(name, 0) for name in targets}
    if difficulty is None:
        return Scenario(targets)
    weights = {name: _weights(difficulty, count) for name, count in levels.items() if count}
    if not weights:
        raise ConfigurationError(f"difficulty: {', '.join(targets)} has no difficulties")
    return Scenario(targets, weights)


def _weights(difficulty: int | Sequence[float], levels: int) -> tuple[float, ...]:
    if not isinstance(difficulty, int):
        return tuple(difficulty)
    if not 1 <= difficulty <= levels:
        raise ConfigurationError(f"difficulty: must be 1 to {levels} (got {difficulty})")
    return tuple(float(level == difficulty) for level in range(1, levels + 1))

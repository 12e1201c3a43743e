"""Gymnasium environments made from settings, and what is known of them before they are played."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import gymnasium
import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.world import Scenario, WorldSpec
from aimbot_lab.worlds.gymnasium.parameters import check_attributes
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings
from aimbot_lab.worlds.gymnasium.spaces import (
    action_columns,
    numbered_states,
    observation_blocks,
    observation_columns,
)

Env = gymnasium.Env[Any, Any]


@contextmanager
def same_folder() -> Iterator[None]:
    """Have the working directory afterwards be what it was, whatever the block makes it.

    Environments change it, and then the files of a run would go elsewhere.
    """
    here = os.open(".", os.O_RDONLY | getattr(os, "O_PATH", 0))
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)


@same_folder()
def new_environment(settings: GymnasiumSettings) -> Env:
    """One environment. Raises ConfigurationError, in a line, where it can't be made."""
    if settings.module is not None:
        _import(settings.module)
    limit = (
        {}
        if settings.max_episode_steps is None
        else {"max_episode_steps": settings.max_episode_steps}
    )
    with blamed(f"env.id: {settings.id} can't be made:", ConfigurationError):
        return gymnasium.make(
            settings.id, disable_env_checker=True, **limit, **dict(settings.kwargs)
        )


@contextmanager
def tried_environment(settings: GymnasiumSettings) -> Iterator[Env]:
    """An environment to ask things of, which is closed then.

    Raises ConfigurationError, in a line, where it can't be made or asked.
    """
    env = new_environment(settings)
    with same_folder(), blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
        try:
            yield env
        finally:
            env.close()


def _import(module: str) -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in the working directory
    with blamed(f"env.module: {module} can't be imported:", ConfigurationError):
        import_module(module)


def _attribute(env: Env, name: str) -> Any:
    """What `env` or one of its wrappers has by that name; None: nothing."""
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None


def environment_shape(env: Env, settings: GymnasiumSettings) -> WorldSpec:
    """The spec of a world of environments like `env`.

    Raises ConfigurationError for spaces that can't be columns.
    """
    seen, actions = observation_columns(env.observation_space), action_columns(env.action_space)
    abilities = {"paired"}
    if actions.branches and callable(_attribute(env, "action_masks")):
        abilities.add("masks")
    if env.render_mode == "rgb_array":
        abilities.add("draw")
    return WorldSpec(
        observation_names=seen.names,
        observation_low=seen.low,
        observation_high=seen.high,
        branches=actions.branches,
        continuous=len(actions.taken.low),
        continuous_limit=1.0,
        targets={TARGET: 1},
        difficulties={TARGET: 0},
        reward_terms=("reward",),
        parameters=(),
        action_names=actions.names,
        environment_actions=actions.taken,
        time_unit="steps",
        max_steps=env.spec.max_episode_steps if env.spec else settings.max_episode_steps,
        abilities=frozenset(abilities),
        blocks=observation_blocks(env.observation_space),
        states=numbered_states(env.observation_space),
    )


def checked_scenario(scenario: Scenario, env: Env, settings: GymnasiumSettings) -> None:
    """Raise ConfigurationError for another target, and for a parameter that there is not."""
    for target, weight in scenario.targets.items():
        if target != TARGET:
            raise ConfigurationError(f"scenario: no target {target!r}; there is {TARGET}")
        if not (np.isfinite(weight) and weight > 0):
            raise ConfigurationError(f"scenario: the weight of {TARGET} must be above 0")
    if not scenario.targets:
        raise ConfigurationError(f"scenario: the target {TARGET} is missing")
    if settings.via == "attributes":
        check_attributes(env, scenario.parameters)

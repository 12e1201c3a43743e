"""Environments with any spaces, and agents for them that learned nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import gymnasium
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from aimbot_lab.training.agents.agent_files import SavedAgent, load_agent, save_agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.network import network_of
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, ObservationParts
from aimbot_lab.worlds.registry import spec_of

NUMBERS = spaces.Box(-float("inf"), float("inf"), (3,))
EPISODE = 12  # steps


class AnySpaces(gymnasium.Env[Any, Any]):
    """It shows what is drawn from one space, and keeps what it was given of another."""

    def __init__(self, seen: spaces.Space[Any], taken: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = seen, taken
        self.shown: list[Any] = []
        self.given: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.given, self.shown = [], []
        return self._drawn(), {}

    def _drawn(self) -> Any:
        self.shown.append(self.observation_space.sample())
        return self.shown[-1]

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.given.append(action)
        return self._drawn(), 1.0, len(self.given) == EPISODE, False, {}


def registered(
    monkeypatch: pytest.MonkeyPatch, seen: spaces.Space[Any], taken: spaces.Space[Any]
) -> str:
    """The id of an environment with these spaces, by which its spec is kept."""
    name = f"Any{crc32(f'{seen!r}{taken!r}'.encode())}-v0"
    spec = EnvSpec(name, lambda: AnySpaces(seen, taken), disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


def unlearned(
    folder: Path,
    algo: str,
    taken: spaces.Space[Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    seen: spaces.Space[Any] = NUMBERS,
    by: float = 1.0,
    flatten: tuple[str, ...] = (),
    **given: Any,
) -> SavedAgent:
    """An agent with random weights for an environment with these spaces, written to `folder`."""
    name = registered(monkeypatch, seen, taken)
    env = GymnasiumSettings(id=name, num_envs=2, observation=ObservationParts(flatten=flatten))
    spec = spec_of(env)
    train = ALGORITHMS[algo].settings(
        algo=algo, total_steps=1000, **{"network": NetworkSettings(layers=(8,)), **given}
    )
    network = network_of(train.network).resolved(train.network, spec)
    made = TrainingPlan(1, env, (), replace(train, network=network))
    policy = new_policy(made.train, spec)
    shake(policy, by)
    return kept(policy, folder, made)


def shake(policy: Any, by: float) -> None:
    """Have its choices, and what it remembers, differ."""
    th.manual_seed(3)
    with th.no_grad():
        for weight in policy.parameters():
            weight.add_(th.randn_like(weight) * by)


def kept(policy: Any, folder: Path, made: TrainingPlan) -> SavedAgent:
    """The agent of `policy`, as it comes back from its files."""
    save_agent(policy, folder, env=made.env, train=made.train, about={"step": 7})
    return load_agent(folder)

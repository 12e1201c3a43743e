"""Agents of builds whose behaviors have the forms that ML-Agents' serializer knows."""

from pathlib import Path
from typing import Any

import torch as th

from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)
from aimbot_lab.training.agents.agent_files import SavedAgent, load_agent, save_agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings
from aimbot_lab.worlds.registry import spec_of
from aimbot_lab.worlds.unity.settings import BuildShape, UnitySettings, world_spec
from aimbot_lab.worlds.unity.world_type import UNITY

NONE, MOVABLE = DimensionProperty.NONE, DimensionProperty.TRANSLATIONAL_EQUIVARIANCE
SHAKE = 0.5
SMALL = NetworkSettings(layers=(8,), scaling="running")


def vector(size: int, name: str = "Vector") -> ObservationSpec:
    return ObservationSpec((size,), (NONE,), ObservationType.DEFAULT, name)


CAMERA = ObservationSpec((20, 24, 3), (MOVABLE, MOVABLE, NONE), ObservationType.DEFAULT, "camera")
BUFFER = ObservationSpec((4, 3), (NONE, NONE), ObservationType.DEFAULT, "Buffer")
MIXED = ActionSpec(1, (3, 3, 2))
REMEMBERS = NetworkSettings(layers=(8,), memory=MemorySettings(size=8))
FORMS: dict[str, tuple[BehaviorSpec, dict[str, Any]]] = {
    "plain": (BehaviorSpec([vector(8)], ActionSpec(3, ())), {"aim": "hybrid"}),
    "mixed": (BehaviorSpec([vector(8)], MIXED), {"aim": "hybrid", "masks": True}),
    "memory": (BehaviorSpec([vector(8)], MIXED), {"aim": "hybrid", "network": REMEMBERS}),
    "picture": (BehaviorSpec([CAMERA, vector(5)], ActionSpec(0, (3, 2))), {}),
    "two": (BehaviorSpec([vector(8), vector(5, "A")], ActionSpec(2, ())), {"aim": "hybrid"}),
}


def agent_of_build(
    folder: Path, behavior: BehaviorSpec, algo: str = "hybrid_ppo", **train: Any
) -> SavedAgent:
    """An agent of a build with this behavior, with random weights."""
    env = UnitySettings(file_name=str(folder / "Game"))
    UNITY.keep_spec(env, world_spec(BuildShape("Walker", behavior, 8, {}), env))
    settings = ALGORITHMS[algo].settings(**{"algo": algo, "network": SMALL, **train})
    policy = new_policy(settings, spec_of(env))
    th.manual_seed(3)
    with th.no_grad():
        for weight in policy.parameters():
            weight.add_(th.randn_like(weight) * SHAKE)
    save_agent(policy, folder, env=env, train=settings, about={})
    return load_agent(folder)

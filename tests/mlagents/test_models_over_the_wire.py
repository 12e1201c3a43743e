"""A model for a scene, played by onnxruntime on our player's messages, wins as the agent does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.mlagents.base_env import ActionTuple
from aimbot_lab.mlagents.builds import Behaviors
from aimbot_lab.mlagents.messages import RESET, STEP
from aimbot_lab.mlagents.session import PlayerSession
from aimbot_lab.training.agents.agent_files import SavedAgent, load_agent, save_agent
from aimbot_lab.training.agents.onnx_export import session_of
from aimbot_lab.training.agents.unity_export import export_unity
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings, CameraSettings, ObservationSettings
from aimbot_lab.worlds.registry import make_world, spec_of
from tests.unity.played_builds import SessionLink

pytest.importorskip("onnxruntime")
ROWS, STEPS, SEED = 16, 60, 1
EASY = Scenario({"goto": 1.0}, {"goto": [1.0, 0.0, 0.0, 0.0, 0.0]})
FILMED = ObservationSettings(camera=CameraSettings(width=12, height=8))
PLAIN = NetworkSettings(layers=(8,))
HYBRID = {"aim": "hybrid", "masks": True}
REMEMBERS = NetworkSettings(layers=(8,), memory=MemorySettings(size=6))
KINDS: dict[str, tuple[str, dict[str, Any], ObservationSettings]] = {
    "hybrid_ppo": ("hybrid_ppo", HYBRID, ObservationSettings()),
    "memory": ("hybrid_ppo", {**HYBRID, "network": REMEMBERS}, ObservationSettings()),
    "picture": ("hybrid_ppo", HYBRID, FILMED),
    "ppo": ("ppo", {}, ObservationSettings()),
    "dqn": ("dqn", {}, ObservationSettings()),
}


def agent(folder: Path, kind: str) -> SavedAgent:
    """An agent of random weights, which wins where the FireBase is wide."""
    algo, given, seen = KINDS[kind]
    env = ArenaSettings(num_envs=ROWS, goto_win_radius=14.0, time_limit=2.0, observation=seen)
    train = ALGORITHMS[algo].settings(**{"algo": algo, "network": PLAIN, **given})
    policy = new_policy(train, spec_of(env))
    th.manual_seed(5)
    with th.no_grad():
        for weight in policy.parameters():
            weight.add_(th.randn_like(weight))
    save_agent(policy, folder, env=env, train=train, about={})
    return load_agent(folder)


def by_wire(saved: SavedAgent, path: Path, seed: int) -> list[bool]:
    """Whether each episode was won, in the order in which they ended."""
    world, model, behaviors, won = make_world(saved.env), session_of(path), Behaviors(), []
    link = SessionLink(PlayerSession(world, EASY))
    link.greet(seed)
    link.send(RESET, {}, b"")
    taken = {one.name: one.shape for one in model.get_inputs()}
    names = [one.name for one in model.get_outputs()]
    memory = np.zeros((ROWS, *taken.get("recurrent_in", [0, 1, 0])[1:]), np.float32)
    for _ in range(STEPS):
        message = link.receive()
        ((name, behavior),) = behaviors.of(message).items()
        decisions, terminals = behavior.infos.decode(message.infos[name])
        won += (terminals.reward > 0).tolist()
        memory[terminals.agent_id] = 0.0
        assert decisions.action_mask is not None
        allowed = 1.0 - np.concatenate(decisions.action_mask, axis=1)
        if not saved.agent.masked:  # which the agent in process is not shown either
            allowed[:] = 1.0
        given = {f"obs_{place}": first(seen) for place, seen in enumerate(decisions.obs)}
        given |= {"action_masks": allowed.astype(np.float32), "recurrent_in": memory}
        found = model.run(names, {key: given[key] for key in taken})
        told = dict(zip(names, found, strict=True))
        memory = told.get("recurrent_out", memory)
        action = ActionTuple(
            told["deterministic_continuous_actions"],
            told["deterministic_discrete_actions"].astype(np.int32),
        )
        link.send(STEP, {name: behavior.actions.encode(action)}, b"")
    return won


def first(seen: np.ndarray) -> np.ndarray:
    """A picture as Unity's package 3 and later shows it to a model, with its channels first."""
    return np.ascontiguousarray(np.moveaxis(seen, 3, 1)) if seen.ndim == 4 else seen


def in_process(saved: SavedAgent, seed: int) -> list[bool]:
    """The same of the agent in torch."""
    world, won = make_world(saved.env), list[bool]()
    world.set_scenario(EASY)
    buffers, starts = step_buffers(world), np.ones(ROWS, np.bool_)
    world.reset(seed, buffers.observations)
    player = saved.agent.player(world, temperature=LIKELIEST)
    for _ in range(STEPS - 1):
        actions = player(buffers.observations, starts)
        won += world.step(actions, buffers).won.tolist()
        starts = buffers.finished.copy()
    return won


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_wins_over_the_wire_as_its_agent_in_process(tmp_path: Path, kind: str) -> None:
    saved, path = agent(tmp_path / "agent", kind), tmp_path / "agent.onnx"
    export_unity(saved, path, observations=200)
    theirs, ours = by_wire(saved, path, SEED), in_process(saved, SEED)
    assert len(theirs) == len(ours) >= ROWS
    assert abs(sum(theirs) - sum(ours)) <= 1  # rounding may turn one
    assert sum(ours) > 0

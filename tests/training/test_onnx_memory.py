"""Exported agents with encoders, a target and a memory play as the agent does, step after step."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch as th
from any_spaces import kept, shake
from tiny_training import plan
from units_training import ENCODED, units_plan

from aimbot_lab.evaluation.temperature import LIKELIEST, Temperature
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import AimedMouse, DeployedPolicy
from aimbot_lab.training.agents.onnx_export import (
    Given,
    Memories,
    OnnxCheck,
    PlainPolicy,
    Played,
    compare,
    compare_onnx,
    export_onnx,
    refuse_difference,
    sample,
)
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.registry import spec_of

onnxruntime = pytest.importorskip("onnxruntime")
PAGE = Path(__file__).parents[2] / "aimbot_lab" / "evaluation" / "README.md"
REMEMBERING = NetworkSettings(
    layers=(12,), scalars=(10,), units=ENCODED.units, memory=MemorySettings(size=7, critic="own")
)
EVERYTHING = {
    **{"network": REMEMBERING, "target": "attention", "aim": "hybrid", "masks": True},
    "objective": "per_branch",
}
LAYERED = {"lstm_hidden_size": 6, "n_lstm_layers": 2}


def saved_agent(folder: Path, made: TrainingPlan) -> SavedAgent:
    policy = new_policy(made.train, spec_of(made.env))
    shake(policy, 0.5)
    return kept(policy, folder, made)


class Exported(NamedTuple):
    saved: SavedAgent
    path: Path
    check: OnnxCheck


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("everything")
    saved, path = saved_agent(folder / "agent", units_plan(**EVERYTHING)), folder / "agent.onnx"
    check = export_onnx(saved, path, temperature=LIKELIEST, observations=2_000)
    return Exported(saved, path, check)


def test_onnxruntime_plays_and_remembers_as_torch_from_state_to_state(everything: Exported) -> None:
    saved, path, check = everything
    assert (check.observations, check.steps, check.other_choices) == (2_000, 100, 0)
    assert 0 < check.largest < 1e-5
    assert check.memory_difference < 1e-4
    session = onnxruntime.InferenceSession(path)
    told: dict[str, str] = session.get_modelmeta().custom_metadata_map
    assert int(told["memory_size"]) == 7
    assert "zero memory_h and memory_c where an episode begins" in told["memory"]
    assert [block["kind"] for block in json.loads(told["units"])] == ["rays", "enemies"]
    assert json.loads(told["target"]) == [["enemies", slot] for slot in range(6)]
    assert json.loads(told["choices"]) == [3, 3, 2, 7]
    size = len(saved.agent.spec.observation_names)
    inputs = {"observation": size, "action_masks": 8, "memory_h": 7, "memory_c": 7}
    assert {one.name: one.shape[1] for one in session.get_inputs()} == inputs
    names = ["action", "scores", "memory_h_out", "memory_c_out"]
    assert [one.name for one in session.get_outputs()] == names
    part = PAGE.read_text(encoding="utf-8").split("## Export")[1]
    assert all(f"`{name}`" in part for name in ("memory_h", "memory_c", "action_masks", "noise"))
    assert DeployedPolicy(saved).columns == 5  # of noise: one for the target


def test_two_layers_play_and_remember_as_the_agent_with_noise_as_well(tmp_path: Path) -> None:
    saved = saved_agent(tmp_path, plan("recurrent_ppo", options=LAYERED))
    deployed = DeployedPolicy(saved, Temperature(0.5))
    policy = PlainPolicy(deployed)

    def played(given: Given, memory: Memories) -> Played:
        with th.no_grad():
            outputs = policy(*map(th.from_numpy, policy.inputs_of(given, memory).values()))
        actions, scores, *after = (one.numpy() for one in outputs)
        return actions, scores, dict(zip(memory, after, strict=True))

    few = sample(saved.agent.spec, 330, seed=5, columns=deployed.columns)
    check = compare(saved, deployed, few, played)
    assert (check.observations, check.steps, check.other_choices) == (300, 100, 0)
    assert check.largest < 1e-5
    assert check.memory_difference < 1e-4


def test_an_agent_that_remembers_otherwise_is_noticed(everything: Exported) -> None:
    (saved, path, _), weight = everything, "memory.cell.weight_hh"
    given = sample(saved.agent.spec, 400)
    before = dict(saved.agent.policy.named_parameters())[weight]
    as_it_was = before.detach().clone()
    with th.no_grad():
        before.add_(1e-2)
        check = compare_onnx(saved, path, given, temperature=LIKELIEST)
        before.copy_(as_it_was)
    assert check.memory_difference > 1e-4
    with pytest.raises(LabError, match="otherwise than the agent"):
        refuse_difference(replace(check, other_choices=0, largest=0.0))


def test_a_deployed_target_turns_the_mouse_as_the_worlds_adapter_does(tmp_path: Path) -> None:
    linear = {"network": NetworkSettings(layers=(9,)), "target": "linear"}
    saved = saved_agent(tmp_path / "agent", units_plan(**linear))
    given = sample(saved.agent.spec, 2_000, columns=5)
    chosen = np.random.default_rng(1).integers(0, [3, 3, 2, 7, 11], (2_000, 5))
    wanted, bins = saved.agent.world_actions(chosen, given.observation), saved.agent.bins[0]
    target, mouse = (th.from_numpy(one) for one in (chosen[:, 3], bins[chosen[:, 4]]))
    turned = AimedMouse(saved.agent.spec)(target, mouse, th.from_numpy(given.observation))
    np.testing.assert_allclose(turned.numpy(), wanted[:, 3], atol=1e-5)
    assert (turned != mouse).float().mean() > 0.3
    assert (turned == mouse)[target == 0].all()


def test_the_lines_of_the_page_play_the_file_as_the_agent_plays(
    everything: Exported, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Export")[1]
    *_, lines = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(everything.path.parent)
    easy = lines.replace("num_envs=100, ", "num_envs=100, goto_win_radius=12.0, time_limit=3.0, ")
    assert easy != lines
    exec(easy, {})
    assert 0.0 < float(capsys.readouterr().out) == played_win_rate(everything.saved)


def played_win_rate(saved: SavedAgent) -> float:
    """Of the first episodes of a hundred rows, played by the agent itself."""
    settings = {"num_envs": 100, "goto_win_radius": 12.0, "time_limit": 3.0}
    arena = Arena(type(saved.env)(observation=saved.env.observation, **settings))
    arena.set_scenario(Scenario({"goto": 1}))
    buffers = step_buffers(arena)
    player = saved.agent.player(arena, temperature=LIKELIEST)
    arena.reset(1, buffers.observations)
    starts, won = np.ones(100, np.bool_), {}
    while len(won) < 100:
        episodes = arena.step(player(buffers.observations, starts), buffers)
        for row, is_won in zip(episodes.row, episodes.won, strict=True):
            won.setdefault(int(row), bool(is_won))
        starts = buffers.finished.copy()
    return sum(won.values()) / 100

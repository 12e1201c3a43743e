"""An exported agent plays as the agent does, and one that would not is not written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.training.agents import SavedAgent, load_agent, save_agent
from aimbot_lab.training.algorithms import ALGORITHMS
from aimbot_lab.training.deployed import DeployedPolicy
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.onnx_export import compare_onnx, export_onnx, sample
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training
from tests.training.tiny_training import Sink, plan

SHAKE = 1.0  # large enough for a mouse that is cut at its limit
RUNNING = NetworkSettings(layers=(16,), scaling="running")
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("ppo", {"network": RUNNING}),
    ("trpo", {}),
    ("maskable_ppo", {}),
    ("duel_ppo", {"aim": "hybrid", "masks": True, "objective": "per_branch", "engine": "torch"}),
    ("duel_ppo", {"aim": "hybrid", "engine": "fused"}),
    ("duel_ppo", {"masks": True, "engine": "torch"}),
    ("duel_ppo", {"network": RUNNING, "engine": "fused"}),
    ("dqn", {}),
    ("qrdqn", {}),
]


def saved_agent(folder: Path, algo: str, **train: Any) -> SavedAgent:
    """An agent whose weights were shaken, so that its choices differ; then it learns a little.

    What it learned is in the file too, whatever engine it was that learned.
    """
    training = Training(plan(algo, **train))
    th.manual_seed(3)
    with th.no_grad():
        for weight in training.model.policy.parameters():
            weight.add_(th.randn_like(weight) * SHAKE)
    training.learn(Sink(), SilentObserver(), lambda: False)
    settings = training.plan
    about = {"step": 7}
    save_agent(training.model.policy, folder, env=settings.env, train=settings.train, about=about)
    return load_agent(folder)


@pytest.mark.parametrize(("algo", "train"), KINDS, ids=str)
def test_the_deployed_network_chooses_as_the_agent(
    tmp_path: Path, algo: str, train: dict[str, Any]
) -> None:
    saved = saved_agent(tmp_path, algo, **train)
    observations, masks = sample(saved.agent.spec, 10_000)
    deployed = DeployedPolicy(saved)
    given = [th.from_numpy(observations)] + [th.from_numpy(masks)] * deployed.masked
    with th.no_grad():
        actions = deployed(*given)[0].numpy()
    wanted, _ = saved.agent.choose(observations, branch_masks=masks)
    assert (actions[:, :-1] == wanted[:, :-1]).all(axis=1).mean() > 0.999
    np.testing.assert_allclose(actions[:, -1], wanted[:, -1], atol=1e-5)
    assert len(np.unique(actions, axis=0)) > 5
    if deployed.heads.limit is not None:
        assert 0.01 < (np.abs(actions[:, -1]) == deployed.heads.limit).mean() < 0.99


@pytest.mark.parametrize(("algo", "train"), KINDS, ids=str)
def test_onnxruntime_plays_as_torch_on_ten_thousand_observations(
    tmp_path: Path, algo: str, train: dict[str, Any]
) -> None:
    pytest.importorskip("onnxruntime")
    saved, path = saved_agent(tmp_path / "agent", algo, **train), tmp_path / "agent.onnx"
    check = export_onnx(saved, path)
    assert (check.observations, check.other_choices) == (10_000, 0)
    assert check.mouse_difference <= 1e-5
    others = compare_onnx(saved, path, *sample(saved.agent.spec, 33, seed=5))
    assert (others.observations, others.other_choices) == (33, 0)
    told = _metadata(path)
    assert json.loads(told["observation_names"]) == list(saved.agent.spec.observation_names)
    assert str(Path.cwd()).encode() not in path.read_bytes()


def test_a_file_that_plays_otherwise_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    saved = saved_agent(tmp_path / "agent", "ppo")

    def wrong(self: DeployedPolicy, scores: th.Tensor) -> th.Tensor:
        return self._with_bins([scores[:, 0].long() * 0] * 4)

    monkeypatch.setattr(DeployedPolicy, "_actions", wrong)
    with pytest.raises(LabError, match="plays otherwise than the agent"):
        export_onnx(saved, tmp_path / "agent.onnx", observations=100)
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_an_agent_with_a_memory_is_refused_in_one_line(tmp_path: Path) -> None:
    saved = saved_agent(tmp_path / "agent", "recurrent_ppo")
    with pytest.raises(ConfigurationError, match="recurrent_ppo: its agent remembers") as refused:
        export_onnx(saved, tmp_path / "agent.onnx")
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["agent"]


def test_no_algorithm_is_left_out() -> None:
    assert {algo for algo, _ in KINDS} | {"recurrent_ppo"} == set(ALGORITHMS)


def _metadata(path: Path) -> dict[str, str]:
    import onnx

    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}

"""Agents as files for a Unity scene: ML-Agents' names and shapes, and the agent's actions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from units_training import units_plan

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.mlagents.base_env import ActionSpec, BehaviorSpec
from aimbot_lab.mlagents.info_codec import sensors_of
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.onnx_export import OnnxCheck, sample
from aimbot_lab.training.agents.unity_export import export_unity
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from tests.mlagents.unity_agents import BUFFER, FORMS, MIXED, agent_of_build, vector
from tests.mlagents.unity_loader import failed_checks
from tests.training.any_spaces import unlearned
from tests.training.test_onnx_export import WIDE
from tests.training.test_onnx_memory import EVERYTHING, LAYERED, saved_agent

onnxruntime = pytest.importorskip("onnxruntime")


def exported(saved: SavedAgent, path: Path, **given: Any) -> OnnxCheck:
    return export_unity(saved, path, observations=500, **given)


def apart(one: np.ndarray, other: np.ndarray, shares: list[float]) -> np.ndarray:
    """Between quantiles."""
    return np.abs(np.quantile(one, shares) - np.quantile(other, shares))


def interface(path: Path) -> dict[str, dict[str, tuple[str, list[Any]]]]:
    """Names, types and shapes of what goes in and out; a number of rows is None."""
    session = onnxruntime.InferenceSession(path)
    return {
        kind: {
            one.name: (one.type, [size if isinstance(size, int) else None for size in one.shape])
            for one in listed
        }
        for kind, listed in (("in", session.get_inputs()), ("out", session.get_outputs()))
    }


@pytest.mark.parametrize("name", FORMS)
def test_a_file_is_what_unitys_loader_takes_and_plays_as_torch(tmp_path: Path, name: str) -> None:
    behavior, train = FORMS[name]
    saved, path = agent_of_build(tmp_path / "agent", behavior, **train), tmp_path / "agent.onnx"
    check = exported(saved, path)
    assert (check.other_choices, check.largest < 1e-5) == (0, True)
    for deterministic in (False, True):
        assert failed_checks(path, behavior, deterministic=deterministic) == []
    wrong = BehaviorSpec([vector(9), *behavior.observation_specs[1:]], ActionSpec(1, (3,)))
    assert len(failed_checks(path, wrong, deterministic=True)) >= 2


@pytest.mark.parametrize("algo", [name for name in ALGORITHMS.own if name != "q_learning"])
def test_every_algorithm_has_a_file_for_three_numbers_or_choices(tmp_path: Path, algo: str) -> None:
    numbers = not (ALGORITHMS[algo].ranks_actions or ALGORITHMS[algo].masked)
    actions = ActionSpec(3, ()) if numbers else ActionSpec(0, (3, 2, 1))
    given = {"hybrid_ppo": {"aim": "hybrid"}, "recurrent_ppo": {"options": LAYERED}}.get(algo, {})
    behavior = BehaviorSpec([vector(6)], actions)
    saved = agent_of_build(tmp_path / "agent", behavior, algo, **given)
    check = exported(saved, tmp_path / "agent.onnx")
    assert (check.other_choices, check.largest < 1e-5) == (0, True)
    assert failed_checks(tmp_path / "agent.onnx", behavior) == []


def test_drawn_actions_are_as_frequent_as_the_agents(tmp_path: Path) -> None:
    behavior = BehaviorSpec([vector(4)], ActionSpec(1, (3,)))
    saved = agent_of_build(tmp_path / "agent", behavior, aim="hybrid")
    heat = Temperature(0.7)
    exported(saved, tmp_path / "agent.onnx", temperature=heat)
    rows = 20_000
    seen = sample(saved.agent.spec, 1).observation.repeat(rows, axis=0)
    likely = saved.agent.probabilities(seen[:1], temperature=heat)
    session = onnxruntime.InferenceSession(tmp_path / "agent.onnx")
    masks = np.tile(np.array([[1, 1, 0]], np.float32), (rows, 1))
    names = ["discrete_actions", "continuous_actions"]
    choices, numbers = session.run(names, {"obs_0": seen, "action_masks": masks})
    share = likely.choices[0][0, :2] / likely.choices[0][0, :2].sum()
    assert np.abs(np.bincount(choices[:, 0], minlength=3)[:2] / rows - share).max() < 0.02
    assert choices.max() == 1  # a forbidden choice is never taken
    assert likely.means is not None
    free = np.random.default_rng(1).normal(likely.means[0, 0], likely.deviation[0], rows)
    assert apart(numbers, free.clip(-1, 1), [0.2, 0.5, 0.8]).max() < 0.05


def test_squashed_numbers_are_drawn_around_the_likeliest(tmp_path: Path) -> None:
    saved = agent_of_build(tmp_path / "agent", BehaviorSpec([vector(4)], ActionSpec(2, ())), "sac")
    exported(saved, tmp_path / "agent.onnx")
    seen = sample(saved.agent.spec, 1).observation.repeat(5000, axis=0)
    session = onnxruntime.InferenceSession(tmp_path / "agent.onnx")
    drawn, surest = session.run(
        ["continuous_actions", "deterministic_continuous_actions"], {"obs_0": seen}
    )
    th.manual_seed(1)
    wanted, _ = saved.agent.choose(seen)
    for column in range(2):
        assert apart(drawn[:, column], wanted[:, column], [0.1, 0.5, 0.9]).max() < 0.1
    assert (surest == surest[0]).all()
    assert drawn.std(axis=0).min() > 0


def test_an_agent_of_the_arena_fits_the_sensors_of_its_player(tmp_path: Path) -> None:
    saved, path = saved_agent(tmp_path / "agent", units_plan(**EVERYTHING)), tmp_path / "a.onnx"
    check = export_unity(saved, path, observations=20)
    assert (check.other_choices, check.steps) == (0, 20)
    sensors = [one.spec for one in sensors_of(saved.agent.spec)]
    assert failed_checks(path, BehaviorSpec(sensors, MIXED)) == []
    found = interface(path)
    assert found["in"]["recurrent_in"] == found["out"]["recurrent_out"]
    bound = float(saved.agent.spec.action_ranges[1][0])
    numbers = np.abs(_played(path, saved)["deterministic_continuous_actions"])
    assert 0.0 < numbers.max() <= 1.0 < bound * 10


def _played(path: Path, saved: SavedAgent) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    given = {
        one.name: np.zeros([2 if isinstance(size, str) else size for size in one.shape], np.float32)
        for one in session.get_inputs()
    }
    given["obs_0"] = sensors_of(saved.agent.spec)[0].of(sample(saved.agent.spec, 2).observation)
    given["action_masks"] = np.ones((2, 8), np.float32)
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


def test_sensors_keep_the_order_and_the_shapes_of_the_build(tmp_path: Path) -> None:
    behavior = BehaviorSpec([vector(2, "b"), BUFFER, vector(3, "Z")], ActionSpec(0, (2,)))
    saved, path = agent_of_build(tmp_path / "agent", behavior), tmp_path / "agent.onnx"
    exported(saved, path)
    shapes = {name: shape[1:] for name, (_, shape) in interface(path)["in"].items()}
    assert shapes == {"obs_0": [2], "obs_1": [4, 3], "obs_2": [3], "action_masks": [2]}
    assert failed_checks(path, behavior) == []


def test_what_no_scene_takes_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = unlearned(tmp_path / "agent", "hybrid_ppo", WIDE, monkeypatch, aim="hybrid")
    with pytest.raises(ConfigurationError, match=r"world gymnasium: .*--for plain"):
        exported(saved, tmp_path / "a.onnx")
    assert not (tmp_path / "a.onnx").exists()

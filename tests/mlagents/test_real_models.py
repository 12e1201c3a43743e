"""Our models for a scene of Unity have the form of those that ML-Agents writes, and win by it."""

import json
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.experiment.conversion.players import export_player
from aimbot_lab.training.agents.unity_export import export_unity
from tests.cli.tiny_runs import invoke, train, write
from tests.mlagents.real_programs import free_port, told_by
from tests.mlagents.unity_agents import FORMS, agent_of_build
from tests.mlagents.unity_loader import channels_first

pytestmark = pytest.mark.real_ml_agents
EASY = """
name: easy
env: {num_envs: 128, goto_win_radius: 4.0, time_limit: 12.0}
lessons: [{name: open ground, targets: {goto: 1}, difficulty: {goto: [1, 0, 0, 0, 0]}}]
train:
  algo: hybrid_ppo
  total_steps: 589_824
  n_steps: 32
  batch_size: 1024
  learning_rate: 0.002
  network: {layers: [32], memory: {size: 8}}
  masks: true
  aim: hybrid
  torch_threads: 1
"""
AGENTS, EPISODES = 100, 1  # of each: the first ones begin as those of evaluate do
MEMORY = 16  # of hidden and cell together, in the form that has one


def form_of(name: str) -> dict[str, Any]:
    behavior, _ = FORMS[name]
    return {
        "shapes": [channels_first(sensor) for sensor in behavior.observation_specs],
        "continuous": behavior.action_spec.continuous_size,
        "branches": behavior.action_spec.discrete_branches,
        "memory": MEMORY if name == "memory" else 0,
    }


def test_names_shapes_types_and_opset_are_those_of_ml_agents_serializer(tmp_path: Path) -> None:
    for name, (behavior, given) in FORMS.items():
        saved = agent_of_build(tmp_path / f"agent-{name}", behavior, **given)
        export_unity(saved, tmp_path / f"ours-{name}.onnx", observations=100)
    forms = json.dumps({name: form_of(name) for name in FORMS})
    theirs = told_by("serialized_forms.py", tmp_path, input=forms)
    assert {name: interface(tmp_path / f"ours-{name}.onnx") for name in FORMS} == theirs


def interface(path: Path) -> dict[str, Any]:
    """As `serialized_forms` tells it."""
    import onnx

    model = onnx.load(path)
    listed = {"in": model.graph.input, "out": model.graph.output}
    sizes = {
        kind: {
            one.name: [
                one.type.tensor_type.elem_type,
                [size.dim_value or None for size in one.type.tensor_type.shape.dim],
            ]
            for one in values
        }
        for kind, values in listed.items()
    }
    opset = [one.version for one in model.opset_import]
    head = {"opset": opset, "ir": model.ir_version, "metadata": len(model.metadata_props)}
    return {**head, **sizes}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a trained agent's model and its curriculum, and what `evaluate` says of it."""
    folder = tmp_path_factory.mktemp("trained")
    train(folder / "data", write(folder, "easy.yaml", EASY))
    invoke(folder / "data", "export", "latest", "-o", folder / "agent.onnx", "--for", "unity")
    asked = ("--episodes", AGENTS * EPISODES, "--no-baselines", "--json")
    return folder, invoke(folder / "data", "evaluate", "latest", *asked).document["players"]


@pytest.mark.parametrize(
    ("kind", "player"), [("likeliest", "likeliest action"), ("drawn", "sampled")]
)
def test_a_trained_agents_model_wins_over_the_wire_as_often_as_evaluate_says(
    trained: tuple[Path, dict[str, Any]], kind: str, player: str
) -> None:
    folder, players = trained
    build = export_player(folder / "build").with_suffix("")
    asked = folder / "agent.onnx", build, free_port(), EPISODES, kind
    options = "--curriculum", folder / "easy.yaml", "--agents", AGENTS
    told, said = told_by("model_calls.py", *asked, *options), players[player]["overall"]
    assert told["episodes"] == said["episodes"] == AGENTS * EPISODES
    share = (told["won"] + said["wins"] + 1) / (2 * said["episodes"] + 2)  # also if all are won
    deviation = (2 * share * (1 - share) / said["episodes"]) ** 0.5
    assert share > 0.2
    assert abs(told["won"] - said["wins"]) / said["episodes"] <= 4 * deviation

"""Our models for a scene of Unity have the inputs and outputs of those that ML-Agents writes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.training.agents.unity_export import export_unity
from tests.mlagents.test_real_ml_agents import PYTHON
from tests.mlagents.unity_agents import FORMS, agent_of_build
from tests.mlagents.unity_loader import channels_first

pytestmark = pytest.mark.real_ml_agents
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
    for name, (behavior, train) in FORMS.items():
        saved = agent_of_build(tmp_path / f"agent-{name}", behavior, **train)
        export_unity(saved, tmp_path / f"ours-{name}.onnx", observations=100)
    command = [str(PYTHON), str(Path(__file__).with_name("serialized_forms.py")), str(tmp_path)]
    told = subprocess.run(
        command,
        input=json.dumps({name: form_of(name) for name in FORMS}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    theirs = json.loads(told.stdout.rpartition("\n")[2])
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

"""What ML-Agents' own serializer writes, told as plain data; run by the Python of its packages.

`serialized_forms.py FOLDER`: a JSON document of behaviors comes from standard input, one of what
goes into and out of each one's file goes to the last line of standard output.
"""

import functools
import json
import sys
import warnings

import onnx
import torch
from mlagents_envs.base_env import (
    ActionSpec,
    BehaviorSpec,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
)

warnings.simplefilter("ignore")
torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)
from mlagents.trainers.policy.torch_policy import TorchPolicy  # noqa: E402
from mlagents.trainers.settings import NetworkSettings  # noqa: E402
from mlagents.trainers.torch_entities.model_serialization import ModelSerializer  # noqa: E402
from mlagents.trainers.torch_entities.networks import SimpleActor  # noqa: E402


def sensor(shape):
    moves = [DimensionProperty.NONE, *[DimensionProperty.TRANSLATIONAL_EQUIVARIANCE] * 2]
    given = moves if len(shape) == 3 else [DimensionProperty.NONE] * len(shape)
    return ObservationSpec(tuple(shape), tuple(given), ObservationType.DEFAULT, "a sensor")


def write(path, form):
    memory = form["memory"]
    kept = NetworkSettings.MemorySettings(sequence_length=8, memory_size=memory) if memory else None
    spec = BehaviorSpec(
        [sensor(shape) for shape in form["shapes"]],
        ActionSpec(form["continuous"], tuple(form["branches"])),
    )
    network = NetworkSettings(hidden_units=8, num_layers=1, memory=kept)
    actor = {"conditional_sigma": False, "tanh_squash": False}
    ModelSerializer(TorchPolicy(0, spec, network, SimpleActor, actor)).export_policy_model(path)


def interface(path):
    """Opset, and names, types and shapes; a number of rows is None."""
    model = onnx.load(path)

    def listed(values):
        return {
            one.name: [
                one.type.tensor_type.elem_type,
                [size.dim_value or None for size in one.type.tensor_type.shape.dim],
            ]
            for one in values
        }

    return {
        "opset": [one.version for one in model.opset_import],
        "ir": model.ir_version,
        "metadata": len(model.metadata_props),
        "in": listed(model.graph.input),
        "out": listed(model.graph.output),
    }


if __name__ == "__main__":
    found = {}
    for name, form in json.load(sys.stdin).items():
        write(f"{sys.argv[1]}/{name}", form)
        found[name] = interface(f"{sys.argv[1]}/{name}.onnx")
    sys.stdout.write("\n" + json.dumps(found))

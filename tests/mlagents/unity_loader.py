"""The checks by which Unity's package takes a model for Behavior Parameters.

Written down from com.unity.ml-agents 4.0 (Runtime/Inference/SentisModelParamLoader.cs and
SentisModelInfo.cs): a model is run once with zeros, and its inputs and outputs are compared with
the agent's sensors and actions. Its operators must be among those that the manual of Barracuda 2.0
lists, the package before Sentis, which has all of them, too.
"""

from pathlib import Path
from typing import Any

import numpy as np

from aimbot_lab.mlagents.base_env import BehaviorSpec, DimensionProperty

BESIDE = {"prev_action", "epsilon", "action_masks", "sequence_length", "recurrent_in"}
KINDS = ("continuous", "discrete")
OPERATORS = """
    Add And ArgMax ArgMin AveragePool BatchNormalization Cast Concat Constant ConstantOfShape Conv
    ConvTranspose DepthToSpace Div Dropout Equal Expand Flatten Gather Gemm GlobalAveragePool
    GlobalMaxPool Greater Identity ImageScaler InstanceNormalization Less LessOrEqual LRN LSTM
    MatMul Max MaxPool Mean Min Mul Multinomial NonMaxSuppression NonZero Not OneHot Or Pad Pow
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSum Reshape Resize Shape Slice SpaceToDepth Split Squeeze Sub Sum Tile TopK
    Transpose Unsqueeze Upsample Where Xor
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil Clip Cos Cosh Elu Exp Floor LeakyRelu Log LogSoftmax
    Neg PRelu Reciprocal Relu Round Selu Sigmoid Sin Sinh Softmax Sqrt Tan Tanh
"""


def failed_checks(path: Path, spec: BehaviorSpec, *, deterministic: bool = False) -> list[str]:
    """What Unity says against the model at `path` for agents of `spec`; [] where it takes it."""
    import onnx
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    shapes = {
        one.name: [size if isinstance(size, int) else 1 for size in one.shape]
        for one in session.get_inputs()
    }
    names = [one.name for one in session.get_outputs()]
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    outputs = dict(zip(names, session.run(names, zeros), strict=True))
    for name in ("version_number", "memory_size"):
        if name not in outputs:
            return [f'Required constant "{name}" was not found in the model file.']
        if outputs[name].dtype != np.float32:
            return [f"{name} is no tensor of floats"]
    actions = {kind: f"{kind}_actions" for kind in KINDS}
    if not any(one in name for one in actions.values() for name in names):
        return ["The model does not contain any Action Output Node."]
    sizes = {kind: outputs.get(f"{kind}_action_output_shape") for kind in KINDS}
    prefix, said = "deterministic_" if deterministic else "", list[str]()
    for kind, name in actions.items():
        if not any(name in one for one in names):
            continue
        size = sizes[kind]
        if size is None or size.dtype != np.float32:
            return [f"The model uses {kind} action but does not contain its Output Shape Node."]
        if not any(prefix + name in one for one in names) or size.sum() <= 0:
            return [f"The model does not contain {prefix}{kind} Action Output Tensor."]
    unknown = {node.op_type for node in onnx.load(path).graph.node}.difference(OPERATORS.split())
    said += [f"Unknown operator: {name}" for name in sorted(unknown)]
    version, memory = int(outputs["version_number"][0]), int(outputs["memory_size"][0])
    if version != 3:
        said.append(f"Model version {version}")
    said += _input_checks(shapes, spec, memory=memory, masked=sizes["discrete"] is not None)
    continuous = 0 if sizes["continuous"] is None else int(sizes["continuous"][0])
    branches = [] if sizes["discrete"] is None else sizes["discrete"].ravel().tolist()
    if continuous != spec.action_spec.continuous_size:
        said.append(f"Continuous Action Size of the model does not match: {continuous}")
    if branches != [*spec.action_spec.discrete_branches]:
        said.append(f"Discrete Action Size of the model does not match: {branches}")
    if memory > 0 and "recurrent_out" not in names:
        said.append("The model does not contain a Recurrent Output Node but has memory_size.")
    return said


def _input_checks(
    shapes: dict[str, list[int]], spec: BehaviorSpec, *, memory: int, masked: bool
) -> list[str]:
    said, known = [], set(BESIDE)
    for place, sensor in enumerate(spec.observation_specs):
        name = f"obs_{place}"
        known.add(name)
        wanted = [1, *channels_first(sensor)]
        if name not in shapes:
            said.append(f"The model does not contain an Observation Placeholder Input: {name}")
        elif shapes[name] != wanted:
            said.append(f"The observation {name} does not match: {shapes[name]}, not {wanted}")
    if memory > 0 and shapes.get("recurrent_in") != [1, 1, memory]:
        said.append("The model does not contain a Recurrent Input Node but has memory_size.")
    if masked and "action_masks" not in shapes:
        said.append("The model does not contain an Action Mask but is using Discrete Control.")
    unknown = sorted(shapes.keys() - known)
    return said + [f"Model contains an unexpected input named : {name}" for name in unknown]


def channels_first(sensor: Any) -> tuple[int, ...]:
    """A sensor's shape as Unity's package 3 and later has it: channels before height and width."""
    shape: tuple[int, ...] = sensor.shape
    if len(shape) == 3 and sensor.dimension_property[0] != DimensionProperty.NONE:
        return (shape[2], shape[0], shape[1])
    return shape

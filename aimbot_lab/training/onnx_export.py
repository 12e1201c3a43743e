"""Agents as ONNX files, compared with torch before they count."""

import json
import logging
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch as th

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec
from aimbot_lab.training.agents import SavedAgent
from aimbot_lab.training.deployed import DeployedPolicy

OPSET = 18
INPUTS, OUTPUTS = ("observation", "action_masks"), ("action", "scores")
CLOSE = 1e-5  # of a mouse action, and of scores that count as equal
ACTION_NAMES = ("vertical", "horizontal", "attack", "mouse")


@dataclass(frozen=True)
class OnnxCheck:
    """How an ONNX file compares with the agent in torch."""

    observations: int
    other_choices: int  # rows with another choice, ties within CLOSE left out
    mouse_difference: float  # the largest, where choices agree


def export_onnx(saved: SavedAgent, path: Path, *, observations: int = 10_000) -> OnnxCheck:
    """The file `path` written: raw observations in, the world's actions out, scaling inside.

    It appears only where onnxruntime plays it as torch plays the agent, on so many observations.
    Raises ConfigurationError where the libraries for ONNX are missing and for an agent with a
    memory, LabError where the two differ.
    """
    deployed = DeployedPolicy(saved).eval()
    _check_libraries()
    fresh = path.with_name(f".{path.name}.part")
    try:
        _write(deployed, saved, fresh)
        check = compare_onnx(saved, fresh, *sample(saved.agent.spec, observations))
        if check.other_choices or check.mouse_difference > CLOSE:
            raise LabError(
                f"the ONNX file plays otherwise than the agent: {check.other_choices} of "
                f"{check.observations} choices, mouse by up to {check.mouse_difference:g}"
            )
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return check


def _check_libraries() -> None:
    try:
        import onnx
        import onnxruntime
        import onnxscript
    except ImportError as error:
        raise ConfigurationError(
            f"an ONNX file needs {error.name}: pip install 'aimbot-lab[onnx]'"
        ) from error
    del onnx, onnxruntime, onnxscript  # that they are there was the question


def _write(deployed: DeployedPolicy, saved: SavedAgent, path: Path) -> None:
    import onnx

    observation, masks = sample(saved.agent.spec, 2)
    given = [th.from_numpy(observation)]
    if deployed.masked:
        given.append(th.from_numpy(masks))
    rows = th.export.Dim("rows", min=1)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        program = th.onnx.export(
            deployed,
            tuple(given),
            dynamo=True,
            opset_version=OPSET,
            input_names=INPUTS[: len(given)],
            output_names=OUTPUTS,
            dynamic_shapes=tuple({0: rows} for _ in given),
        )
    assert program is not None
    model = program.model_proto
    _strip(model)
    onnx.helper.set_model_props(model, _about(deployed, saved))
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def _strip(model: Any) -> None:
    """Drop what the exporter notes for itself, the places of source files among it."""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output):
        del part.metadata_props[:]
        part.doc_string = ""
    for weight in graph.initializer:
        del weight.metadata_props[:]


def _about(deployed: DeployedPolicy, saved: SavedAgent) -> dict[str, str]:
    """What a user of the file should know of its columns."""
    spec, train = saved.agent.spec, saved.train
    about: dict[str, Any] = {
        "made_by": "aimbot-lab",
        "algo": train.algo,
        "observation_names": list(spec.observation_names),
        "action_names": list(ACTION_NAMES),
        "scores": "values" if deployed.heads.flat else "logits",
        "choices": list(deployed.heads.choices),
        "about": saved.about,
    }
    if deployed.heads.limit is None:
        about["aim_bins"] = list(train.aim_bins)
    else:
        about["mouse_std"] = th.exp(deployed.policy.log_std).tolist()
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }


def sample(spec: WorldSpec, rows: int, *, seed: int = 1) -> tuple[Float32Array, BoolArray]:
    """Observations [rows, D] drawn evenly from their declared ranges, and masks [rows, 8].

    No branch is masked as a whole.
    """
    random = np.random.default_rng(seed)
    low, high = spec.observation_low, spec.observation_high
    drawn = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    masks = random.random((rows, sum(spec.branches))) < 0.7
    starts = np.cumsum([0, *spec.branches[:-1]])
    masks[:, starts] = True
    return drawn, masks


def compare_onnx(
    saved: SavedAgent, path: Path, observations: Float32Array, masks: BoolArray
) -> OnnxCheck:
    """The file at `path` in onnxruntime against the agent in torch, its likeliest actions."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given: dict[str, Any] = {"observation": observations}
    if saved.agent.masked:
        given["action_masks"] = masks
    actions, scores = session.run(list(OUTPUTS), given)
    wanted, _ = saved.agent.choose(observations, branch_masks=masks)
    other = (actions[:, :-1] != wanted[:, :-1]).any(axis=1)
    bins = saved.train.aim == "bins"
    if bins:
        other |= actions[:, -1] != wanted[:, -1]
    other &= ~_tied(DeployedPolicy(saved), scores)
    same = (actions[:, :-1] == wanted[:, :-1]).all(axis=1)
    apart = np.abs(actions[same, -1] - wanted[same, -1]) if not bins else np.zeros(1)
    return OnnxCheck(len(observations), int(other.sum()), float(apart.max(initial=0.0)))


def _tied(deployed: DeployedPolicy, scores: Float32Array) -> BoolArray:
    """Rows [N] in which the two best scores of a branch are as good as equal."""
    heads = deployed.heads
    ends = [scores.shape[1]] if heads.flat else np.cumsum(heads.choices).tolist()
    tied = np.zeros(len(scores), np.bool_)
    for begin, end in zip([0, *ends], ends, strict=False):
        best = np.sort(scores[:, begin:end], axis=1)[:, -2:]
        tied |= best[:, 1] - best[:, 0] <= CLOSE * np.maximum(1.0, np.abs(best[:, 1]))
    return tied

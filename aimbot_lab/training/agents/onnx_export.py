"""Agents as ONNX files, compared with torch before they count."""

import json
import logging
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any

import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy
from aimbot_lab.training.agents.onnx_check import (
    MEMORY_OUTPUTS,
    OUTPUTS,
    OnnxCheck,
    compare_onnx,
    inputs_of,
    mouse_tolerance,
    sample,
)
from aimbot_lab.training.networks.parts.unit_kinds import encoded_blocks, target_blocks
from aimbot_lab.training.networks.settings import NetworkSettings

OPSET = 18
NOISE = (
    "random numbers of an even distribution from 0 to 1, one for each column of the action, drawn "
    "anew for each decision; the same ones give the same action"
)
NOISE_OF_TARGET = "; the one before the last chooses the target"
MEMORY = (
    "zero memory_h and memory_c where an episode begins, and give the outputs memory_h_out and "
    "memory_c_out back with the next observation of the same episode"
)
STATE_CLOSE = 1e-4  # by which what is remembered may differ after 100 steps


def export_onnx(
    saved: SavedAgent,
    path: Path,
    *,
    temperature: Temperature | None = None,
    observations: int = 10_000,
) -> OnnxCheck:
    """The file `path` written: raw observations in, the environment's actions out, scaled inside.

    It plays at `temperature`, or at the one that is advised. It appears only where onnxruntime
    plays it as torch plays the agent, on so many observations; those of an agent that remembers
    are episodes of 100 steps, played on from state to state. Raises ConfigurationError where the
    libraries for ONNX are missing and for an agent that can't play at the temperature, LabError
    where the two differ.
    """
    deployed = DeployedPolicy(saved, temperature).eval()
    _check_libraries()
    fresh = path.with_name(f".{path.name}.part")
    try:
        _write(deployed, saved, fresh)
        given = sample(deployed.spec, observations, columns=deployed.columns)
        check = compare_onnx(saved, fresh, given, temperature=deployed.temperature)
        refuse_difference(check, mouse=mouse_tolerance(saved.agent.spec))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return check


def refuse_difference(check: OnnxCheck, *, mouse: float) -> None:
    """Raise LabError where the file plays otherwise, its mouse by more than `mouse`."""
    if check.other_choices or check.mouse_difference > mouse:
        raise LabError(
            f"the ONNX file plays otherwise than the agent: {check.other_choices} of "
            f"{check.observations} choices, mouse by up to {check.mouse_difference:g}"
        )
    if check.memory_difference > STATE_CLOSE:
        raise LabError(
            "the ONNX file remembers otherwise than the agent, by up to "
            f"{check.memory_difference:g} after {check.steps} steps"
        )


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

    few = sample(deployed.spec, 2, columns=deployed.columns)
    given = inputs_of(deployed, few, deployed.nothing(2))
    rows = th.export.Dim("rows", min=1)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        program = th.onnx.export(
            deployed,
            kwargs={name: th.from_numpy(array) for name, array in given.items()},
            dynamo=True,
            opset_version=OPSET,
            input_names=list(given),
            output_names=OUTPUTS if deployed.memory is None else (*OUTPUTS, *MEMORY_OUTPUTS),
            dynamic_shapes={name: {0: rows} for name in given},
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
        "action_names": list(spec.action_names),
        "actions": _described_actions(spec),
        "scores": "values" if deployed.heads.flat else "logits",
        "choices": list(deployed.heads.choices),
        "temperature": float(deployed.temperature),
        "player": deployed.temperature.label,
        "about": saved.about,
    }
    if deployed.noisy:
        about["noise"] = NOISE + (NOISE_OF_TARGET if deployed.aimed else "")
    if deployed.memory is not None:
        about |= {"memory": MEMORY, "memory_size": deployed.memory.size}
    about |= _about_units(deployed, saved)
    if deployed.heads.limits is None and spec.continuous:
        about["aim_bins"] = saved.agent.bins[0].tolist()  # before they become bounds' shares
    elif deployed.heads.limits is not None:
        about["mouse_std"] = th.exp(deployed.policy.log_std).tolist()
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }


def _described_actions(spec: WorldSpec) -> dict[str, Any]:
    """Its columns in order, the shape and the type of an action.

    A column is a choice from so many, the first of which is `start`, or a number with its bounds,
    null where there is none.
    """
    names = spec.action_names or tuple(
        f"action_{place}" for place in range(len(spec.branches) + spec.continuous)
    )
    count, taken = len(spec.branches), spec.environment_actions
    starts: Sequence[float] = (0,) * count if taken is None else taken.starts
    low, high = (one.tolist() for one in spec.action_bounds)
    if taken is not None:
        low, high = list(taken.low), list(taken.high)
    choices = zip(names, spec.branches, starts, strict=False)
    numbers = zip(names[count:], low, high, strict=True)
    return {
        "columns": [
            *({"name": name, "choices": size, "start": start} for name, size, start in choices),
            *({"name": name, "low": _end(a), "high": _end(b)} for name, a, b in numbers),
        ],
        "shape": [len(names)] if taken is None else list(taken.shape),
        "dtype": "float32" if taken is None else taken.dtype,
    }


def _end(bound: float) -> float | None:
    return bound if isfinite(bound) else None


def _about_units(deployed: DeployedPolicy, saved: SavedAgent) -> dict[str, Any]:
    """Which columns are units: those that an encoder reads, and those that may be the target."""
    spec, network = saved.agent.spec, saved.train.network
    encoded = encoded_blocks(network, spec) if isinstance(network, NetworkSettings) else ()
    targets = target_blocks(spec) if deployed.aimed else ()
    shown = {one.kind for one in (*encoded, *targets)}
    units = [
        {"kind": one.kind, "features": list(one.features), "columns": one.columns.tolist()}
        for one in spec.units
        if one.kind in shown
    ]
    about: dict[str, Any] = {"units": units} if units else {}
    if deployed.aimed:
        about["target"] = [[one.kind, slot] for one in targets for slot in range(one.slots)]
    return about

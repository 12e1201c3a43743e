"""Agents as ONNX files, compared with torch before they count."""

import json
import logging
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy

OPSET = 18
OUTPUTS = ("action", "scores")
CLOSE = 1e-5  # of scores that count as equal, and of cumulated probabilities
MOUSE_CLOSE = 1e-4  # share of the mouse's range, which float32 keeps to where logits are large
NOISE = (
    "random numbers of an even distribution from 0 to 1, one for each column of the action, drawn "
    "anew for each decision; the same ones give the same action"
)


@dataclass(frozen=True)
class OnnxCheck:
    """How an ONNX file compares with the agent in torch."""

    observations: int
    other_choices: int  # rows with another choice, ties within CLOSE left out
    mouse_difference: float  # the largest, where choices agree


def export_onnx(
    saved: SavedAgent,
    path: Path,
    *,
    temperature: Temperature | None = None,
    observations: int = 10_000,
) -> OnnxCheck:
    """The file `path` written: raw observations in, the world's actions out, scaling inside.

    It plays at `temperature`, or at the one that is advised. It appears only where onnxruntime
    plays it as torch plays the agent, on so many observations. Raises ConfigurationError where
    the libraries for ONNX are missing, for an agent with a memory and for one that can't play at
    the temperature, LabError where the two differ.
    """
    deployed = DeployedPolicy(saved, temperature).eval()
    _check_libraries()
    fresh = path.with_name(f".{path.name}.part")
    try:
        _write(deployed, saved, fresh)
        given = sample(saved.agent.spec, observations)
        check = compare_onnx(saved, fresh, given, temperature=deployed.temperature)
        if check.other_choices or check.mouse_difference > mouse_tolerance(saved.agent.spec):
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

    given = inputs_of(deployed, sample(saved.agent.spec, 2))
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
            output_names=OUTPUTS,
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
        "scores": "values" if deployed.heads.flat else "logits",
        "choices": list(deployed.heads.choices),
        "temperature": float(deployed.temperature),
        "player": deployed.temperature.label,
        "about": saved.about,
    }
    if deployed.noisy:
        about["noise"] = NOISE
    if deployed.heads.limits is None and spec.continuous:
        about["aim_bins"] = saved.agent.bins[0].tolist()
    elif deployed.heads.limits is not None:
        about["mouse_std"] = th.exp(deployed.policy.log_std).tolist()
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }


class Given(NamedTuple):
    """What a file may take; it says which."""

    observation: Float32Array  # [N, D]
    action_masks: BoolArray  # [N, sum of branches]
    noise: Float32Array  # [N, columns of an action], from 0 to 1


def sample(spec: WorldSpec, rows: int, *, seed: int = 1) -> Given:
    """Observations drawn evenly from their declared ranges, masks and noise.

    No branch is masked as a whole.
    """
    random = np.random.default_rng(seed)
    low, high = spec.observation_low, spec.observation_high
    drawn = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    masks = random.random((rows, sum(spec.branches))) < 0.7
    starts = np.cumsum([0, *spec.branches[:-1]])
    masks[:, starts] = True
    columns = len(spec.branches) + spec.continuous
    return Given(drawn, masks, random.random((rows, columns), np.float32))


def inputs_of(deployed: DeployedPolicy, given: Given) -> dict[str, Any]:
    """Those of what is `given` that `deployed` takes, by name."""
    taken = {"action_masks": deployed.masked, "noise": deployed.noisy}
    return {name: array for name, array in given._asdict().items() if taken.get(name, True)}


def compare_onnx(
    saved: SavedAgent, path: Path, given: Given, *, temperature: Temperature
) -> OnnxCheck:
    """The file at `path` in onnxruntime against the agent in torch, at `temperature`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    deployed = DeployedPolicy(saved, temperature)
    actions, scores = session.run(list(OUTPUTS), inputs_of(deployed, given))
    if deployed.noisy:
        wanted, tied = drawn_actions(saved, given, temperature)
    else:
        wanted, _ = saved.agent.choose(
            given.observation, branch_masks=given.action_masks, temperature=temperature
        )
        tied = _tied(deployed, scores)
    bins = saved.train.aim == "bins"
    other = (actions != wanted)[:, : None if bins else -1].any(axis=1)
    apart = np.zeros(1) if bins else np.abs(actions[~other, -1] - wanted[~other, -1])
    count = int((other & ~tied).sum())
    return OnnxCheck(len(actions), count, float(apart.max(initial=0.0)))


def drawn_actions(
    saved: SavedAgent, given: Given, temperature: Temperature
) -> tuple[Float32Array, BoolArray]:
    """Actions [N, A] that the agent's probabilities make of the noise, in double precision.

    And the rows [N] in which a number of it lies where one choice passes into the next.
    """
    agent = saved.agent
    likely = agent.probabilities(
        given.observation, branch_masks=given.action_masks, temperature=temperature
    )
    noise = given.noise.astype(np.float64)
    columns, tied = [], np.zeros(len(noise), np.bool_)
    for column, chances in enumerate(likely.choices):
        below = np.cumsum(chances, axis=1)[:, :-1] - noise[:, [column]]
        columns.append((below <= 0).sum(axis=1))
        tied |= (np.abs(below) <= CLOSE).any(axis=1)
    if likely.means is None and agent.spec.continuous:
        columns[-1] = agent.bins[0][columns[-1]]
    elif likely.means is not None:
        apart = th.special.ndtri(th.from_numpy(noise[:, -1])).numpy()
        (low,), (high,) = agent.spec.action_bounds
        columns.append((likely.means + likely.deviation * apart).clip(low, high))
    return np.column_stack(columns).astype(np.float32), tied


def mouse_tolerance(spec: WorldSpec) -> float:
    """By how much a continuous mouse may differ: this share of its range; 0 without one."""
    if not spec.continuous:
        return 0.0
    (low,), (high,) = spec.action_ranges
    return float(MOUSE_CLOSE * (high - low))


def _tied(deployed: DeployedPolicy, scores: Float32Array) -> BoolArray:
    """Rows [N] in which the two best scores of a branch are as good as equal."""
    heads = deployed.heads
    ends = [scores.shape[1]] if heads.flat else np.cumsum(heads.choices).tolist()
    tied = np.zeros(len(scores), np.bool_)
    for begin, end in zip([0, *ends], ends, strict=False):
        best = np.sort(scores[:, begin:end], axis=1)[:, -2:]
        tied |= best[:, 1] - best[:, 0] <= CLOSE * np.maximum(1.0, np.abs(best[:, 1]))
    return tied

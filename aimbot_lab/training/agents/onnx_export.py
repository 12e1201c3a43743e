"""Agents as ONNX files, compared with torch before they count."""

import json
import logging
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import (
    COLUMNS,
    BoolArray,
    Float32Array,
    Observations,
    WorldSpec,
    columns_of,
)
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy
from aimbot_lab.training.networks.settings import NetworkSettings, encoded_blocks, target_blocks

PICTURE = "picture_"  # how the names of inputs begin that are pictures
OUTPUTS = ("action", "scores")
MEMORY_OUTPUTS = ("memory_h_out", "memory_c_out")
CLOSE = 1e-5  # of scores that count as equal, and of cumulated probabilities
MOUSE_CLOSE = 1e-4  # share of a column's range, which float32 keeps to where logits are large
HALF = 1e-3  # how near to a half a number counts as between two whole ones
FARTHEST = 1e6  # from which a bound of observations counts as unbounded
UNBOUNDED = 20.0  # width from which values of an unbounded column are drawn
SMALLEST = 1e-30  # range of a column whose bounds are equal
STEPS = 100  # of an episode in which an agent remembers
Memories = dict[str, Float32Array]
Played = tuple[Float32Array, Float32Array, Memories]  # actions, scores, what is remembered


@dataclass(frozen=True)
class OnnxCheck:
    """How an ONNX file compares with the agent in torch."""

    observations: int
    other_choices: int  # rows with another choice, ties within CLOSE left out
    mouse_difference: float
    """The largest of continuous columns, where choices agree; in a share of the first's range."""
    steps: int = 1  # of each episode, in which the agent remembered
    memory_difference: float = 0.0  # the largest after the last step


class Given(NamedTuple):
    """What a file may take; it says which."""

    observation: Observations  # [N]
    action_masks: BoolArray  # [N, sum of branches]
    noise: Float32Array  # [N, columns of noise], from 0 to 1


def sample(spec: WorldSpec, rows: int, *, seed: int = 1, columns: int | None = None) -> Given:
    """Observations drawn evenly from their declared ranges, masks and `columns` of noise.

    A range without an end is `UNBOUNDED` wide. No branch is masked as a whole. Without `columns`
    there are as many as an action has.
    """
    random = np.random.default_rng(seed)
    low, high = spec.observation_low, spec.observation_high
    from_below, from_above = low > -FARTHEST, high < FARTHEST
    first = np.where(from_below, low, np.where(from_above, high - UNBOUNDED, -UNBOUNDED / 2))
    last = np.where(from_above, high, np.where(from_below, low + UNBOUNDED, UNBOUNDED / 2))
    drawn = random.uniform(first, last, (rows, len(low))).astype(np.float32)
    observations: Observations = drawn
    if spec.pictures:
        observations = np.zeros(rows, spec.observation_dtype)
        observations[COLUMNS] = drawn
        for block in spec.pictures:
            shape = rows, *block.shape
            observations[block.name] = random.integers(0, 256, shape, np.uint8)
    masks = random.random((rows, sum(spec.branches))) < 0.7
    masks[:, np.cumsum([0, *spec.branches])[:-1]] = True
    wide = len(spec.branches) + spec.continuous if columns is None else columns
    return Given(observations, masks, random.random((rows, wide), np.float32))


def inputs_of(
    deployed: DeployedPolicy, given: Given, memory: dict[str, Float32Array] | None = None
) -> dict[str, Any]:
    """Those of what is `given` that `deployed` takes, by name, and its `memory`.

    Each picture is an input of its own, after all others.
    """
    columns, masks, noise = columns_of(given.observation), given.action_masks, given.noise
    named: dict[str, Any] = {"observation": columns} if columns.shape[1] else {}
    named |= {"action_masks": masks} if deployed.masked else {}
    named |= {"noise": noise} if deployed.noisy else {}
    shown = {
        f"{PICTURE}{block.name}": given.observation[block.name] for block in deployed.spec.pictures
    }
    found = {**named, **(memory or {}), **shown}
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def session_of(path: Path) -> Any:
    """The file at `path` in onnxruntime, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def compare_onnx(
    saved: SavedAgent, path: Path, given: Given, *, temperature: Temperature
) -> OnnxCheck:
    """The file at `path` in onnxruntime against the agent in torch, at `temperature`."""
    deployed, session = DeployedPolicy(saved, temperature), session_of(path)
    names = [*OUTPUTS, *(MEMORY_OUTPUTS if deployed.memory else ())]

    def play(now: Given, memory: Memories) -> Played:
        actions, scores, *after = session.run(names, inputs_of(deployed, now, memory))
        return actions, scores, dict(zip(memory, after, strict=True))

    return compare(saved, deployed, given, play)


def compare(
    saved: SavedAgent,
    deployed: DeployedPolicy,
    given: Given,
    play: Callable[[Given, Memories], Played],
) -> OnnxCheck:
    """What `play` does against the agent in torch, at the temperature of `deployed`.

    What is given of an agent that remembers is cut into episodes of `STEPS` steps, played side by
    side: both sides go on from what they themselves remember.
    """
    steps = 1 if deployed.memory is None else min(STEPS, len(given.observation))
    rows = len(given.observation) // steps
    memory, state, checks = deployed.nothing(rows), None, []
    for step in range(steps):
        now = Given._make(array[step * rows : (step + 1) * rows] for array in given)
        actions, scores, memory = play(now, memory)
        wanted, tied, state = _wanted(
            saved, now, temperature=deployed.temperature, state=state, begins=step == 0
        )
        checks.append(
            _compared(saved, deployed, actions, scores=scores, wanted=wanted, drawn_ties=tied)
        )
    return OnnxCheck(
        observations=steps * rows,
        other_choices=sum(one.other_choices for one in checks),
        mouse_difference=max(one.mouse_difference for one in checks),
        steps=steps,
        memory_difference=_apart(memory, deployed.as_memory(state)) if memory else 0.0,
    )


def _apart(memory: dict[str, Float32Array], other: dict[str, Float32Array]) -> float:
    return max(float(np.abs(memory[name] - other[name]).max()) for name in memory)


def _wanted(
    saved: SavedAgent,
    given: Given,
    *,
    temperature: Temperature,
    state: Any = None,
    begins: bool = True,
) -> tuple[Float32Array, BoolArray, Any]:
    """(actions [N, A] of the agent, rows in which the noise is at an edge [N], state after)."""
    starts = np.full(len(given.observation), begins)
    if temperature > 0:
        return drawn_actions(saved, given, temperature, state=state, starts=starts)
    actions, state = saved.agent.choose(
        given.observation,
        state=state,
        starts=starts,
        branch_masks=given.action_masks,
        temperature=temperature,
    )
    return actions, np.zeros(len(actions), np.bool_), state


def _compared(
    saved: SavedAgent,
    deployed: DeployedPolicy,
    actions: Float32Array,
    *,
    scores: Float32Array,
    wanted: Float32Array,
    drawn_ties: BoolArray,
) -> OnnxCheck:
    spec, taken = saved.agent.spec, saved.agent.spec.environment_actions
    count = len(spec.branches)
    tied = drawn_ties if deployed.noisy else _tied(deployed, scores)
    exact = wanted if taken is None else taken.flat(wanted)
    if taken is not None:
        rest = wanted[:, count:][:, taken.whole] % 1.0
        tied = tied | (np.abs(rest - 0.5) < HALF).any(axis=1)
    other = (actions[:, :count] != exact[:, :count]).any(axis=1)
    apart = _shares_apart(spec, actions[:, count:], exact[:, count:])
    if deployed.heads.limits is None and deployed.aimed is None:  # other bins are other choices
        other |= (apart > MOUSE_CLOSE).any(axis=1)
    largest = apart[~other & ~tied].max(initial=0.0) * _ranges(spec)[:1].sum()
    return OnnxCheck(len(actions), int((other & ~tied).sum()), float(largest))


def _ranges(spec: WorldSpec) -> npt.NDArray[np.float64]:
    """From where to where each continuous column [C] goes, in the environment's units."""
    low, high = (end.astype(np.float64) for end in spec.action_ranges)
    return np.maximum(high - low, SMALLEST)


def _shares_apart(spec: WorldSpec, some: Any, others: Any) -> npt.NDArray[np.float64]:
    """How far continuous columns [N, C] are apart, as shares of what each may be."""
    apart: npt.NDArray[np.float64] = np.abs(np.asarray(some, np.float64) - others) / _ranges(spec)
    return apart


def drawn_actions(
    saved: SavedAgent,
    given: Given,
    temperature: Temperature,
    *,
    state: Any = None,
    starts: BoolArray | None = None,
) -> tuple[Float32Array, BoolArray, Any]:
    """Actions [N, A] that the agent's probabilities make of the noise, in double precision.

    And the rows [N] in which a number of it lies where one choice passes into the next, and what
    the agent remembers afterwards.
    """
    agent = saved.agent
    likely, state = agent.likely(
        given.observation,
        state=state,
        starts=starts,
        branch_masks=given.action_masks,
        temperature=temperature,
    )
    noise = given.noise.astype(np.float64)
    columns, tied = [], np.zeros(len(noise), np.bool_)
    for column, chances in enumerate(likely.choices):
        below = np.cumsum(chances, axis=1)[:, :-1] - noise[:, [column]]
        columns.append((below <= 0).sum(axis=1))
        tied |= (np.abs(below) <= CLOSE).any(axis=1)
    if likely.means is not None:
        count = likely.means.shape[1]
        apart = th.special.ndtri(th.from_numpy(noise[:, -count:])).numpy()
        space: Any = agent.space
        numbers = likely.means + likely.deviation * apart
        if agent.policy.squash_output:
            low, high = (end.ravel().astype(np.float64) for end in (space.low, space.high))
            numbers = low + 0.5 * (np.tanh(numbers) + 1.0) * (high - low)
        ends = (end.ravel()[-numbers.shape[1] :] for end in (space.low, space.high))
        columns.extend(numbers.clip(*ends).T)
    chosen = np.column_stack(columns).reshape(-1, *(agent.space.shape or ()))
    return agent.world_actions(chosen, given.observation), tied, state


def mouse_tolerance(spec: WorldSpec) -> float:
    """By how much a continuous column may differ: this share of the first's range; 0 without."""
    return float(MOUSE_CLOSE * _ranges(spec)[:1].sum())


def _tied(deployed: DeployedPolicy, scores: Float32Array) -> BoolArray:
    """Rows [N] in which the two best scores of a branch are as good as equal."""
    heads = deployed.heads
    ends = [scores.shape[1]] if heads.flat else np.cumsum(heads.choices).tolist()
    tied = np.zeros(len(scores), np.bool_)
    for begin, end in zip([0, *ends], ends, strict=False):
        best = np.sort(scores[:, begin:end], axis=1)[:, -2:]
        tied |= best[:, 1] - best[:, 0] <= CLOSE * np.maximum(1.0, np.abs(best[:, 1]))
    return tied


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
SQUASHED = "means before tanh, and the logarithms of their deviations"
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
    plays it as torch plays the agent, on `observations` of them; those of an agent that remembers
    are episodes of 100 steps, played on from state to state. Raises ConfigurationError where the
    libraries for ONNX are missing and for an agent that can't play at the temperature, LabError
    where the two differ.
    """
    deployed = DeployedPolicy(saved, temperature).eval()
    require_libraries()
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


def require_libraries() -> None:
    """Raise ConfigurationError where a library for ONNX files is missing."""
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
            kwargs=arguments({name: th.from_numpy(array) for name, array in given.items()}),
            dynamo=True,
            opset_version=OPSET,
            input_names=list(given),
            output_names=OUTPUTS if deployed.memory is None else (*OUTPUTS, *MEMORY_OUTPUTS),
            dynamic_shapes=arguments({name: {0: rows} for name in given}),
        )
    assert program is not None
    model = program.model_proto
    strip(model)
    onnx.helper.set_model_props(model, _about(deployed, saved))
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def arguments(named: dict[str, Any]) -> dict[str, Any]:
    """`named` inputs as `DeployedPolicy.forward` takes them: pictures as a tuple."""
    shown = tuple(one for name, one in named.items() if name.startswith(PICTURE))
    rest = {name: one for name, one in named.items() if not name.startswith(PICTURE)}
    return {**rest, "pictures": shown} if shown else rest


def strip(model: Any) -> None:
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
        "observations": _described_observations(spec),
        **({"pictures": _described_pictures(spec)} if spec.pictures else {}),
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
    elif deployed.squashed:
        about["scores"] = SQUASHED
    elif deployed.heads.limits is not None and saved.agent.samples:
        about["mouse_std"] = th.exp(deployed.policy.log_std).tolist()
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }


def _described_pictures(spec: WorldSpec) -> list[dict[str, Any]]:
    """The input of each picture, [rows, height, width, channels] of shades from 0 to 255."""
    return [
        {"name": one.name, "input": f"{PICTURE}{one.name}", "shape": list(one.shape)}
        for one in spec.pictures
    ]


def _described_observations(spec: WorldSpec) -> list[dict[str, Any]]:
    """The input of each entry of an observation, in order, with the keys that lead to it.

    `axes` put those of a picture into the order of its input; of the rest all numbers and choices,
    one after the other as by `gymnasium.spaces.flatten`, are the columns of one input.
    """
    first, last = [1, 2, 0], [0, 1, 2]
    return [
        {"path": list(one.path), "input": "observation"}
        if one.kind != "image"
        else {
            "path": list(one.path),
            "input": f"{PICTURE}{one.name}",
            "axes": first if one.channels_first else last,
        }
        for one in spec.observation_blocks
    ]


def _described_actions(spec: WorldSpec) -> dict[str, Any]:
    """Its columns in order, the shape and the type of an action.

    A column is a choice from `choices`, the first of which is `start`, or a number with its bounds,
    null where it is unbounded.
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

"""An ONNX file against the agent in torch: the same observations, noise and memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy

OUTPUTS = ("action", "scores")
MEMORY_OUTPUTS = ("memory_h_out", "memory_c_out")
CLOSE = 1e-5  # of scores that count as equal, and of cumulated probabilities
MOUSE_CLOSE = 1e-4  # share of the mouse's range, which float32 keeps to where logits are large
STEPS = 100  # of an episode in which an agent remembers


@dataclass(frozen=True)
class OnnxCheck:
    """How an ONNX file compares with the agent in torch."""

    observations: int
    other_choices: int  # rows with another choice, ties within CLOSE left out
    mouse_difference: float  # the largest, where choices agree
    steps: int = 1  # of each episode, in which the agent remembered
    memory_difference: float = 0.0  # the largest after the last step


class Given(NamedTuple):
    """What a file may take; it says which."""

    observation: Float32Array  # [N, D]
    action_masks: BoolArray  # [N, sum of branches]
    noise: Float32Array  # [N, columns of noise], from 0 to 1


def sample(spec: WorldSpec, rows: int, *, seed: int = 1, columns: int | None = None) -> Given:
    """Observations drawn evenly from their declared ranges, masks and `columns` of noise.

    No branch is masked as a whole. Without `columns` there are as many as an action has.
    """
    random = np.random.default_rng(seed)
    low, high = spec.observation_low, spec.observation_high
    drawn = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    masks = random.random((rows, sum(spec.branches))) < 0.7
    starts = np.cumsum([0, *spec.branches[:-1]])
    masks[:, starts] = True
    wide = len(spec.branches) + spec.continuous if columns is None else columns
    return Given(drawn, masks, random.random((rows, wide), np.float32))


def inputs_of(
    deployed: DeployedPolicy, given: Given, memory: dict[str, Float32Array] | None = None
) -> dict[str, Any]:
    """Those of what is `given` that `deployed` takes, by name, and its `memory`."""
    taken = {"action_masks": deployed.masked, "noise": deployed.noisy}
    named = {name: array for name, array in given._asdict().items() if taken.get(name, True)}
    return {**named, **(memory or {})}


def compare_onnx(
    saved: SavedAgent, path: Path, given: Given, *, temperature: Temperature
) -> OnnxCheck:
    """The file at `path` in onnxruntime against the agent in torch, at `temperature`.

    What is given of an agent that remembers is cut into episodes of `STEPS` steps, played side by
    side: both sides go on from what they themselves remember.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    deployed = DeployedPolicy(saved, temperature)
    if deployed.memory is None:
        outputs = session.run(list(OUTPUTS), inputs_of(deployed, given))
        wanted, tied, _ = _wanted(saved, given, temperature=temperature)
        return _compared(saved, deployed, outputs=outputs, wanted=wanted, drawn_ties=tied)
    steps = min(STEPS, len(given.observation))
    rows = len(given.observation) // steps
    memory, state, checks = deployed.nothing(rows), None, []
    for step in range(steps):
        now = Given._make(array[step * rows : (step + 1) * rows] for array in given)
        inputs = inputs_of(deployed, now, memory)
        outputs = session.run([*OUTPUTS, *MEMORY_OUTPUTS], inputs)
        wanted, tied, state = _wanted(
            saved, now, temperature=temperature, state=state, begins=step == 0
        )
        memory = dict(zip(memory, outputs[2:], strict=True))
        checks.append(_compared(saved, deployed, outputs=outputs, wanted=wanted, drawn_ties=tied))
    return OnnxCheck(
        observations=steps * rows,
        other_choices=sum(one.other_choices for one in checks),
        mouse_difference=max(one.mouse_difference for one in checks),
        steps=steps,
        memory_difference=_apart(memory, deployed.as_memory(state)),
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
    *,
    outputs: list[Float32Array],
    wanted: Float32Array,
    drawn_ties: BoolArray,
) -> OnnxCheck:
    actions, scores = outputs[:2]
    tied = drawn_ties if deployed.noisy else _tied(deployed, scores)
    counted = saved.train.aim == "bins" and deployed.aimed is None
    other = (actions != wanted)[:, : None if counted else -1].any(axis=1)
    if counted:
        apart = np.zeros(1)
    else:
        apart = np.abs(actions[~other & ~tied, -1] - wanted[~other & ~tied, -1])
    return OnnxCheck(len(actions), int((other & ~tied).sum()), float(apart.max(initial=0.0)))


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
        apart = th.special.ndtri(th.from_numpy(noise[:, -1])).numpy()
        (low,), (high,) = agent.spec.action_bounds
        columns.append((likely.means + likely.deviation * apart).clip(low, high))
    return agent.world_actions(np.column_stack(columns), given.observation), tied, state


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

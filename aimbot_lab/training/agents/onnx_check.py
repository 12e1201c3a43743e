"""An ONNX file against the agent in torch: the same observations, noise and memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.world import BoolArray, Float32Array, WorldSpec
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy

OUTPUTS = ("action", "scores")
MEMORY_OUTPUTS = ("memory_h_out", "memory_c_out")
CLOSE = 1e-5  # of scores that count as equal, and of cumulated probabilities
MOUSE_CLOSE = 1e-4  # share of a column's range, which float32 keeps to where logits are large
HALF = 1e-3  # how near to a half a number counts as between two whole ones
FARTHEST, UNBOUNDED = 1e6, 20.0  # a bound of observations beyond it is none; and what is drawn then
SMALLEST = 1e-30  # range of a column whose bounds are equal
STEPS = 100  # of an episode in which an agent remembers


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

    observation: Float32Array  # [N, D]
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
    masks = random.random((rows, sum(spec.branches))) < 0.7
    masks[:, np.cumsum([0, *spec.branches])[:-1]] = True
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
    spec, taken = saved.agent.spec, saved.agent.spec.environment_actions
    count = len(spec.branches)
    tied = drawn_ties if deployed.noisy else _tied(deployed, scores)
    exact = wanted if taken is None else taken.flat(wanted)
    if taken is not None and taken.is_whole and spec.continuous:
        rest = taken.scaled(wanted[:, count:]) % 1.0
        tied = tied | (np.abs(rest - 0.5) < HALF).any(axis=1)
    other = (actions[:, :count] != exact[:, :count]).any(axis=1)
    apart = _shares_apart(spec, actions[:, count:], exact[:, count:])
    if saved.train.aim == "bins" and deployed.aimed is None:  # other bins are other choices
        other |= (apart > MOUSE_CLOSE).any(axis=1)
    largest = apart[~other & ~tied].max(initial=0.0) * _ranges(spec)[:1].sum()
    return OnnxCheck(len(actions), int((other & ~tied).sum()), float(largest))


def _ranges(spec: WorldSpec) -> npt.NDArray[np.float64]:
    """From where to where each continuous column [C] goes, in the environment's units."""
    taken = spec.environment_actions
    low, high = spec.action_ranges if taken is None else (taken.low, taken.high)
    return np.maximum(np.asarray(high, np.float64) - np.asarray(low, np.float64), SMALLEST)


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
        apart = th.special.ndtri(th.from_numpy(noise[:, -len(likely.deviation) :])).numpy()
        columns.extend((likely.means + likely.deviation * apart).clip(*agent.spec.action_bounds).T)
    return agent.world_actions(np.column_stack(columns), given.observation), tied, state


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

"""Agents as ONNX files, compared with torch before they count."""

import json
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from itertools import count
from math import isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from torch import nn

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.foundation.world import (
    COLUMNS,
    BoolArray,
    EnvironmentActions,
    Float32Array,
    ObservationBlock,
    Observations,
    WorldSpec,
    columns_of,
)
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy
from aimbot_lab.training.networks.settings import NetworkSettings, encoded_blocks, target_blocks

PICTURE = "picture_"  # how the names of inputs begin that are pictures
CLOSE = 1e-5  # of scores that count as equal, of cumulated probabilities, of a number's range
ROUNDINGS = 4  # of the agent's own, by which a number may differ where these are larger
HALF = 1e-3  # how near to a half a number counts as between two whole ones
FARTHEST = 1e6  # from which a bound of observations counts as unbounded
UNBOUNDED = 20.0  # width from which values of an unbounded column are drawn
SMALLEST = 1e-30  # range of a column whose bounds are equal
STEPS = 100  # of an episode in which an agent remembers
Memories = dict[str, Float32Array]
Played = tuple[npt.NDArray[Any], Float32Array, Memories]  # actions, scores, what is remembered


@dataclass(frozen=True)
class OnnxCheck:
    """How an ONNX file compares with the agent in torch."""

    observations: int
    other_choices: int  # rows with another choice, ties within CLOSE left out
    largest: float  # difference of a number where choices agree, as a share of its range
    steps: int = 1  # of each episode, in which the agent remembered
    memory_difference: float = 0.0  # the largest after the last step
    rounding: float = 0.0
    """By how much the agent's own numbers move with the last bits of what it sees and learned, as
    a share of their range, where anything differs; a file can't be nearer."""
    moved_choices: int = 0
    """How many of its own choices move with these, in as many trials as ROUNDINGS."""


class Given(NamedTuple):
    """What a file may take; it says which."""

    observation: Observations  # [N]
    action_masks: BoolArray  # [N, sum of branches]
    noise: Float32Array  # [N, columns of noise], from 0 to 1


def sample(spec: WorldSpec, rows: int, *, seed: int = 1, columns: int | None = None) -> Given:
    """Observations drawn evenly from their declared ranges, masks and `columns` of noise.

    A range without an end is `UNBOUNDED` wide. No branch is masked as a whole. Without `columns`
    there are as many as an action has. One of the columns of each choice is 1.
    """
    random = np.random.default_rng(seed)
    low, high = spec.observation_low, spec.observation_high
    from_below, from_above = low > -FARTHEST, high < FARTHEST
    first = np.where(from_below, low, np.where(from_above, high - UNBOUNDED, -UNBOUNDED / 2))
    last = np.where(from_above, high, np.where(from_below, low + UNBOUNDED, UNBOUNDED / 2))
    drawn = random.uniform(first, last, (rows, len(low))).astype(np.float32)
    for block, its_columns in spec.columns_by_block:
        _draw_choices(random, block, drawn[:, its_columns])
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


def _draw_choices(random: np.random.Generator, block: ObservationBlock, drawn: Any) -> None:
    """Fill the columns [N, C] of `block` with ones and zeros, where it shows choices."""
    first, rows = 0, np.arange(len(drawn))
    for _, size in block.own.choices if block.own else ():
        drawn[:, first : first + size] = 0.0
        drawn[rows, first + random.integers(0, size, len(drawn))] = 1.0
        first += size


ActionPart = tuple[EnvironmentActions | None, list[int]]
"""The form of an action, or of a part of a Dict or Tuple, and which of its columns that takes.

None: the world's columns as they are.
"""


class PlainPolicy(nn.Module):
    """`deployed` by named inputs and outputs, which programs without this package understand.

    Of an environment of a user's own each entry of its observation is an input [N, *its shape] in
    float32, choices as their numbers, and the action, or each of its parts, an output [N, *its
    shape] of its own type. Other worlds show `observation` [N, D] and `picture_NAME` [N, H, W, C]
    in uint8, and take `action` [N, A].
    """

    def __init__(self, deployed: DeployedPolicy) -> None:
        super().__init__()
        self.deployed, spec = deployed, deployed.spec
        taken, width = spec.environment_actions, len(spec.branches) + spec.continuous
        names = _Names((*INPUTS, *SCORES_AND_MEMORY))
        self.seen: dict[str, ObservationBlock] = {}
        if all(block.own for block in spec.observation_blocks):
            self.seen |= {names.of(block.path): block for block in spec.observation_blocks}
        else:
            if spec.observation_names:
                shape = (len(spec.observation_names),)
                self.seen[OBSERVATION] = ObservationBlock(OBSERVATION, "vector", shape)
            self.seen |= {f"{PICTURE}{block.name}": block for block in spec.pictures}
        self.taken = {
            names.of(path, ACTION): part for path, part in _action_parts(taken, [*range(width)], ())
        }
        memory = deployed.memory is not None
        has = (deployed.masked, deployed.noisy, memory, memory)
        self.inputs = [*self.seen, *(name for name, one in zip(INPUTS, has, strict=True) if one)]
        self.outputs = [*self.taken, *SCORES_AND_MEMORY[: 3 if memory else 1]]

    def forward(self, *given: th.Tensor) -> tuple[th.Tensor, ...]:
        """All outputs, in order, of all inputs in order."""
        named = dict(zip(self.inputs, given, strict=True))
        shown = [(block, named[name]) for name, block in self.seen.items()]
        columns = [_columns(block, part) for block, part in shown if block.kind != "image"]
        pictures = tuple(_picture(block, part) for block, part in shown if block.kind == "image")
        observation = th.cat(columns, dim=1) if columns else None
        rest = (named.get(name) for name in INPUTS)
        actions, *others = self.deployed(observation, *rest, pictures)
        return (*(_part(actions, one) for one in self.taken.values()), *others)

    def inputs_of(self, given: Given, memory: Memories) -> dict[str, Any]:
        """What is `given` as the inputs, by name, with what is remembered."""
        columns, first = columns_of(given.observation), 0
        found: dict[str, Any] = {}
        for name, block in self.seen.items():
            if block.kind == "image":
                found[name] = _own_picture(block, given.observation[block.name])
            else:
                part = columns[:, first : first + block.columns]
                found[name], first = _own_numbers(block, part), first + block.columns
        found |= {"action_masks": given.action_masks, "noise": given.noise, **memory}
        return {name: np.ascontiguousarray(found[name]) for name in self.inputs}

    def actions_of(self, outputs: Sequence[Any]) -> npt.NDArray[np.float64]:
        """The columns [N, A] of an action in `outputs`, in the environment's units."""
        places = [columns for _, columns in self.taken.values()]
        actions = np.zeros((len(outputs[0]), sum(map(len, places))))
        for columns, output in zip(places, outputs, strict=False):
            actions[:, columns] = np.reshape(output, (len(actions), -1))
        return actions


INPUTS = ("action_masks", "noise", "memory_h", "memory_c")  # beside what is seen
SCORES_AND_MEMORY = ("scores", "memory_h_out", "memory_c_out")
OBSERVATION, ACTION = "observation", "action"


class _Names:
    """Names of inputs and outputs, each given once."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = {*taken}

    def of(self, path: Sequence[str | int], prefix: str = "") -> str:
        """The keys that lead to a part, joined: `observation` is a whole one."""
        keys = [prefix or OBSERVATION] if prefix or not path or isinstance(path[0], int) else []
        name = "_".join(map(str, (*keys, *path))) or "'"
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        return name


def _action_parts(
    taken: EnvironmentActions | None, columns: list[int], path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], ActionPart]]:
    """Each part of an action with the keys that lead to it, of the `columns` of a whole one."""
    if taken is None or taken.kind not in ("dict", "tuple"):
        yield path, (taken, columns)
        return
    parts = taken.by_part(np.array([columns]))
    for key, (part, inner) in zip(taken.keys or count(), parts, strict=False):
        yield from _action_parts(part, inner[0].tolist(), (*path, key))


def _part(actions: th.Tensor, part: ActionPart) -> th.Tensor:
    """`part` [N, *shape] of `actions` [N, A], which are in the environment's units."""
    form, columns = part
    if form is None:
        return actions
    return actions[:, columns].reshape(-1, *form.shape).to(getattr(th, form.dtype))


def _columns(block: ObservationBlock, given: th.Tensor) -> th.Tensor:
    """The columns [N, C] of `block`, whose own form is `given` [N, ...]."""
    if block.own is None:
        return given
    flat = given.reshape(-1, prod(block.own.shape))
    if not block.own.choices:
        return flat
    marked = [
        flat[:, [place]] == th.arange(least, least + size)
        for place, (least, size) in enumerate(block.own.choices)
    ]
    return th.cat(marked, dim=1).to(flat.dtype)


def _own_numbers(block: ObservationBlock, columns: Float32Array) -> Float32Array:
    """The opposite of `_columns`."""
    if block.own is None:
        return columns
    if block.own.choices:
        ends = np.cumsum([size for _, size in block.own.choices])[:-1]
        marked = np.split(columns, ends, axis=1)
        pairs = zip(marked, block.own.choices, strict=True)
        columns = np.column_stack([one.argmax(axis=1) + least for one, (least, _) in pairs])
    return columns.reshape(-1, *block.own.shape).astype(np.float32)


def _picture(block: ObservationBlock, given: th.Tensor) -> th.Tensor:
    """The picture [N, H, W, C] in uint8 whose own form is `given`."""
    if block.own is None:
        return given
    if block.own.shades is not None:
        low, high = block.own.shades
        given = ((given.double() - low) * (255.0 / (high - low))).clamp(0.0, 255.0).round()
    last = given.permute(0, 2, 3, 1) if block.channels_first else given
    return last.reshape(-1, *block.shape).to(th.uint8)


def _own_picture(block: ObservationBlock, picture: Any) -> Any:
    """The opposite of `_picture`."""
    if block.own is None:
        return picture
    if block.own.shades is not None:
        low, high = block.own.shades
        picture = picture * ((high - low) / 255.0) + low
    first = np.moveaxis(picture, 3, 1) if block.channels_first else picture
    return first.reshape(-1, *block.own.shape).astype(np.float32)


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
    policy, session = PlainPolicy(DeployedPolicy(saved, temperature)), session_of(path)

    def play(now: Given, memory: Memories) -> Played:
        outputs = session.run(policy.outputs, policy.inputs_of(now, memory))
        scores, *after = outputs[len(policy.taken) :]
        return policy.actions_of(outputs), scores, dict(zip(memory, after, strict=True))

    return compare(saved, policy.deployed, given, play)


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
        checks.append(_compared(deployed, actions, scores=scores, wanted=wanted, drawn_ties=tied))
    largest = max(one.largest for one in checks)
    begun = Given._make(array[:rows] for array in given)
    others = sum(one.other_choices for one in checks)
    rounding, moved = _rounding(deployed, begun) if others or largest > CLOSE else (0.0, 0)
    return OnnxCheck(
        observations=steps * rows,
        other_choices=others,
        largest=largest,
        steps=steps,
        memory_difference=_apart(memory, deployed.as_memory(state)) if memory else 0.0,
        rounding=rounding,
        moved_choices=moved,
    )


def _rounding(deployed: DeployedPolicy, given: Given) -> tuple[float, int]:
    """How far numbers move with the last bits of what is seen and learned, in shares of a range.

    And how many choices do so in `ROUNDINGS` trials, ties left out. Large where a network takes
    away what it has added, as running statistics of a column do that hardly varied. No file in
    single precision can be nearer (backward errors, Higham 2002, Accuracy and Stability of
    Numerical Algorithms).
    """
    random, (own, scores) = th.Generator().manual_seed(1), _played(deployed, given)
    checks = []
    for _ in range(ROUNDINGS):
        moved, seen = deepcopy(deployed), given.observation.copy()
        for one in (*moved.parameters(), *moved.buffers()):
            if one.dtype == th.float32 and one is not moved.starts:  # which are whole numbers
                one.data = _last_bits_moved(one, random)
        columns = columns_of(seen)
        columns[:] = _last_bits_moved(th.from_numpy(columns.copy()), random).numpy()
        actions, _ = _played(moved, given._replace(observation=seen))
        checks.append(_check(deployed, actions, own, tied=_tied(deployed, scores)))
    return max(one.largest for one in checks), sum(one.other_choices for one in checks)


def _played(deployed: DeployedPolicy, given: Given) -> tuple[npt.NDArray[Any], Float32Array]:
    """Actions [N, A] in the environment's units and scores of `deployed`, where episodes begin."""
    plain = PlainPolicy(deployed)
    inputs = plain.inputs_of(given, deployed.nothing(len(given.observation)))
    with th.no_grad():
        outputs = [one.numpy() for one in plain(*map(th.from_numpy, inputs.values()))]
    return plain.actions_of(outputs), outputs[len(plain.taken)]


def _last_bits_moved(values: th.Tensor, random: th.Generator) -> th.Tensor:
    """`values`, each up or down to the next number of its precision."""
    return th.nextafter(values, th.inf * th.randn(values.shape, generator=random).sign())


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
    deployed: DeployedPolicy,
    actions: npt.NDArray[Any],
    *,
    scores: Float32Array,
    wanted: Float32Array,
    drawn_ties: BoolArray,
) -> OnnxCheck:
    taken, count = deployed.spec.environment_actions, len(deployed.spec.branches)
    tied = drawn_ties if deployed.noisy else _tied(deployed, scores)
    exact = wanted if taken is None else taken.flat(wanted)
    if taken is not None:
        rest = wanted[:, count:][:, taken.whole] % 1.0
        tied = tied | (np.abs(rest - 0.5) < HALF).any(axis=1)
    return _check(deployed, actions, exact, tied=tied)


def _check(
    deployed: DeployedPolicy, actions: npt.NDArray[Any], exact: npt.NDArray[Any], *, tied: BoolArray
) -> OnnxCheck:
    """How `actions` [N, A] differ from `exact` ones, those of `tied` rows [N] left out."""
    spec, count = deployed.spec, len(deployed.spec.branches)
    other = (actions[:, :count] != exact[:, :count]).any(axis=1)
    apart = _shares_apart(spec, actions[:, count:], exact[:, count:])
    if deployed.ends is None and deployed.aimed is None:  # other bins are other choices
        other |= (apart > CLOSE).any(axis=1)
    largest = apart[~other & ~tied].max(initial=0.0)
    return OnnxCheck(len(actions), int((other & ~tied).sum()), float(largest))


def _shares_apart(spec: WorldSpec, some: Any, others: Any) -> npt.NDArray[np.float64]:
    """How far continuous columns [N, C] are apart, as shares of what each may be."""
    low, high = (end.astype(np.float64) for end in spec.action_ranges)
    ranges = np.maximum(high - low, SMALLEST)
    apart: npt.NDArray[np.float64] = np.abs(np.asarray(some, np.float64) - others) / ranges
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


def _tied(deployed: DeployedPolicy, scores: Float32Array) -> BoolArray:
    """Rows [N] in which the two best scores of a branch are as good as equal."""
    ends = [scores.shape[1]] if deployed.flat else np.cumsum(deployed.choices).tolist()
    tied = np.zeros(len(scores), np.bool_)
    for begin, end in zip([0, *ends], ends, strict=False):
        if end - begin > 1:
            second, best = np.sort(scores[:, begin:end], axis=1)[:, -2:].T
            tied |= best - second <= CLOSE * np.maximum(1.0, np.abs(best))
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
    with replaced_whole(path) as fresh:
        _write(deployed, saved, fresh)
        given = sample(deployed.spec, observations, columns=deployed.columns)
        check = compare_onnx(saved, fresh, given, temperature=deployed.temperature)
        refuse_difference(check)
    return check


def refuse_difference(check: OnnxCheck) -> None:
    """Raise LabError where the file plays differently from the agent."""
    others = check.other_choices > check.moved_choices
    if others or not check.largest <= max(CLOSE, ROUNDINGS * check.rounding):
        raise LabError(
            f"the ONNX file plays differently from the agent: {check.other_choices} of "
            f"{check.observations} choices, numbers by up to {check.largest:.2g} of their range"
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

    policy = PlainPolicy(deployed)
    few = sample(deployed.spec, 2, columns=deployed.columns)
    given = policy.inputs_of(few, deployed.nothing(2))
    rows = th.export.Dim("rows", min=1)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        program = th.onnx.export(
            policy,
            tuple(map(th.from_numpy, given.values())),
            dynamo=True,
            opset_version=OPSET,
            input_names=policy.inputs,
            output_names=policy.outputs,
            dynamic_shapes=(({0: rows},) * len(given),),
        )
    assert program is not None
    graph, ends = program.model.graph, {*policy.inputs, *policy.outputs}
    for value in (one for node in graph.all_nodes() for one in node.outputs):
        if value.name in ends and value not in graph.outputs:  # an entry has the name of a step
            value.name = f"{value.name} within"
    model = program.model_proto
    strip(model)
    onnx.helper.set_model_props(model, _about(policy, saved))
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def strip(model: Any) -> None:
    """Drop what the exporter notes for itself, the places of source files among it."""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output):
        del part.metadata_props[:]
        part.doc_string = ""
    for weight in graph.initializer:
        del weight.metadata_props[:]


def _about(policy: PlainPolicy, saved: SavedAgent) -> dict[str, str]:
    """What a user of the file should know of its columns."""
    spec, train, deployed = saved.agent.spec, saved.train, policy.deployed
    about: dict[str, Any] = {
        "made_by": "aimbot-lab",
        "algo": train.algo,
        "observation_names": list(spec.observation_names),
        "observations": [
            {"input": name, "path": list(block.path)} for name, block in policy.seen.items()
        ],
        "action_names": list(spec.action_names),
        "actions": _described_actions(spec),
        "scores": "values" if deployed.flat else "logits",
        "choices": list(deployed.choices),
        "temperature": float(deployed.temperature),
        "player": deployed.temperature.label,
        "about": saved.about,
    }
    if deployed.noisy:
        about["noise"] = NOISE + (NOISE_OF_TARGET if deployed.aimed else "")
    if deployed.memory is not None:
        about |= {"memory": MEMORY, "memory_size": deployed.memory.size}
    about |= _about_units(deployed, saved)
    if deployed.ends is None and spec.continuous:
        about["aim_bins"] = saved.agent.bins[0].tolist()  # before they become bounds' shares
    elif deployed.squashed:
        about["scores"] = SQUASHED
    elif deployed.ends is not None and saved.agent.samples:
        about["mouse_std"] = th.exp(deployed.policy.log_std).tolist()
    return {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }


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

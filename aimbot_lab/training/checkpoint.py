"""The complete state of a training as bytes, from which it resumes exactly; reading runs no code.

It holds the model, its rows in several processes, generators, and what identifies it. `save` of
stable-baselines3 keeps less (no generators, no observations) and pickles; here all is plain values,
arrays and tensors. The last episodes, which it only prints, are left out, and the samples to learn
from are parts of their own (`sample_parts`).

The form is a safetensors file: every array and tensor under a number, and the tree itself as JSON,
in which `{"$array": 3}` stands for the fourth of them, and `$records` for arrays of records.
"""

import hashlib
import json
import platform
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import torch as th
from gymnasium import spaces
from safetensors import SafetensorError
from safetensors.numpy import load, save
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.her import HerReplayBuffer

import aimbot_lab
from aimbot_lab.adapters.sb3 import WorldVecEnv, joined_states, part_of_state
from aimbot_lab.curriculum.progress import REPORTS
from aimbot_lab.foundation.seeds import restore_torch_random, torch_random
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import KeptRollout, KeptRollouts
from aimbot_lab.training.algorithms.replay import followings
from aimbot_lab.version import code_hash

TREE = "tree"
Arrays = dict[str, np.ndarray]


def pack(tree: Any) -> bytes:
    """`tree` as bytes: dicts, lists and tuples of plain values, NumPy arrays and tensors.

    Raises TypeError for anything else in it.
    """
    arrays: Arrays = {}
    text = json.dumps(_plain(tree, arrays))
    return save({TREE: np.frombuffer(text.encode(), np.uint8), **arrays})


def unpack(data: bytes) -> Any:
    """The tree that `pack` was given; its arrays and tensors may be written to.

    Raises ValueError where `data` is not of that kind.
    """
    try:
        arrays = load(data)
        return _tree(json.loads(arrays[TREE].tobytes()), arrays)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no packed tree: {error}") from error


def _plain(value: Any, arrays: Arrays) -> Any:
    """`value` as JSON takes it, its arrays put into `arrays`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return _plain_mapping(value, arrays)
    if isinstance(value, list):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(item, arrays) for item in value]}
    if isinstance(value, th.Tensor):
        return {"$tensor": _put(value.detach().cpu().numpy(), arrays)}
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return {"$texts": value.tolist()}
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        fields = [[name, _put(value[name], arrays)] for name in value.dtype.names]
        return {"$records": [value.ndim, fields]}
    if isinstance(value, np.ndarray):
        return {"$array": _put(value, arrays)}
    if isinstance(value, np.generic):
        return {"$number": _put(np.asarray(value), arrays)}
    raise TypeError(f"can't be packed: {type(value).__name__}")


def _plain_mapping(value: Mapping[Any, Any], arrays: Arrays) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _plain(inner, arrays) for key, inner in value.items()}
    pairs = [[_plain(key, arrays), _plain(inner, arrays)] for key, inner in value.items()]
    return {"$mapping": pairs}


def _put(array: np.ndarray, arrays: Arrays) -> str:
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return name


def _tree(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_tree(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    if kind in _KINDS:
        return _KINDS[kind](value[kind], arrays)
    return {key: _tree(inner, arrays) for key, inner in value.items()}


def _records(axes: int, fields: list[list[str]], arrays: Arrays) -> np.ndarray:
    """The array with `axes` axes whose records have these fields."""
    parts = [(name, arrays[place]) for name, place in fields]
    kind = np.dtype([(name, part.dtype, part.shape[axes:]) for name, part in parts], align=True)
    records = np.zeros(parts[0][1].shape[:axes], kind)
    for name, part in parts:
        records[name] = part
    return records


_KINDS: Mapping[str, Callable[[Any, Arrays], Any]] = MappingProxyType(
    {
        "$tuple": lambda items, arrays: tuple(_tree(items, arrays)),
        "$mapping": lambda pairs, arrays: {
            _tree(key, arrays): _tree(inner, arrays) for key, inner in pairs
        },
        "$tensor": lambda name, arrays: th.from_numpy(arrays[name].copy()),
        "$array": lambda name, arrays: arrays[name].copy(),
        "$records": lambda given, arrays: _records(given[0], given[1], arrays),
        "$number": lambda name, arrays: arrays[name][()],
        "$texts": lambda texts, _: np.array(texts),
    }
)


class SampleParts(Protocol):
    """Samples that a model learns from again, as parts of a checkpoint."""

    def take(self) -> Mapping[str, Callable[[], bytes]]:
        """The parts as they stand now, by name, each with what makes it."""

    def state(self) -> Any:
        """Which parts there are, as `take` left them."""

    def resume(self, state: Any, read_part: Callable[[str], bytes]) -> None:
        """Have the model hold what the parts hold that `state` gave."""


def sample_parts(model: BaseAlgorithm) -> SampleParts:
    """The parts for `model`: its kept rollouts, or its replay buffer; none where it has neither."""
    if isinstance(model, HybridPPO) and model.rollouts is not None:
        return RolloutParts(model.rollouts, model.device)
    return ReplayParts(model)


class RolloutParts:
    """A part for each rollout of `kept` that later updates draw from."""

    def __init__(self, kept: KeptRollouts, device: th.device) -> None:
        self._kept, self._device = kept, device

    def take(self) -> Mapping[str, Callable[[], bytes]]:
        """The parts as they stand now, by name, each with what makes it."""
        return {_name(one.step): partial(_packed, one) for one in self._kept.waiting}

    def state(self) -> list[int]:
        """The steps after which the rollouts were complete."""
        return [rollout.step for rollout in self._kept.waiting]

    def resume(self, state: list[int], read_part: Callable[[str], bytes]) -> None:
        """Keep the rollouts that the parts hold."""
        self._kept.waiting = tuple(self._read(step, read_part(_name(step))) for step in state)

    def _read(self, step: int, data: bytes) -> KeptRollout:
        found = unpack(data)
        states = tuple(state.to(self._device) for state in found["states"])
        return KeptRollout(step, found["columns"], states)


def _name(step: int) -> str:
    return f"rollout-{step}"


def _packed(rollout: KeptRollout) -> bytes:
    return pack({"columns": dict(rollout.columns), "states": list(rollout.states)})


COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
FOLLOWING = "following"  # beside them, the observations that `observations` do not hold
MAX_PART = 32 * 2**20  # bytes, about


def _span_name(span: range) -> str:
    """What the part is called that holds these steps of the training."""
    return f"replay-{span.start}-{span.stop}"


class ReplayParts:
    """The parts that together hold what a model's replay buffer holds; none without a buffer."""

    def __init__(self, model: BaseAlgorithm) -> None:
        self._model = model
        self._spans: list[range] = []

    @property
    def _buffer(self) -> ReplayBuffer | None:
        return self._model.replay_buffer if isinstance(self._model, OffPolicyAlgorithm) else None

    def take(self) -> Mapping[str, Callable[[], bytes]]:
        """The parts as they stand now, by name, each with what makes it."""
        buffer = self._buffer
        if buffer is None:
            return {}
        end = self._model.num_timesteps // self._model.n_envs
        self._cover(max(0, end - buffer.buffer_size), end, _longest_span(buffer))
        return {_span_name(span): partial(_pack_span, buffer, span) for span in self._spans}

    def state(self) -> Any:
        """The steps that each part holds, as `take` left them; and what goals need besides."""
        spans, buffer = [[span.start, span.stop] for span in self._spans], self._buffer
        if not isinstance(buffer, HerReplayBuffer) or not spans:
            return spans
        first = max(spans[0][0], spans[-1][1] - buffer.buffer_size)
        is_whole = buffer.ep_length[first % buffer.buffer_size] > 0
        return {"spans": spans, "is_whole": is_whole.tolist()}

    def resume(self, state: Any, read_part: Callable[[str], bytes]) -> None:
        """Fill the buffer, which may be larger than it was, with what the parts hold."""
        spans = state["spans"] if isinstance(state, Mapping) else state
        self._spans, buffer = [range(*steps) for steps in spans], self._buffer
        for span in self._spans:
            _fill(buffer, span, unpack(read_part(_span_name(span))))
        if isinstance(buffer, HerReplayBuffer) and self._spans:
            find_episodes(buffer, self._spans, state["is_whole"])

    def _cover(self, first: int, end: int, longest: int) -> None:
        """Have the spans cover the steps from `first` to `end`, each at most `longest` of them."""
        self._spans = [span for span in self._spans if span.stop > first]
        done = self._spans[-1].stop if self._spans else first
        for begin in range(done, end, longest):
            new = range(begin, min(begin + longest, end))
            while self._spans and len(self._spans[-1]) <= len(new) <= longest // 2:
                new = range(max(self._spans.pop().start, first), new.stop)
            self._spans.append(new)


def find_episodes(
    buffer: HerReplayBuffer, spans: Sequence[range], is_whole: Sequence[bool]
) -> None:
    """Note where the episodes in the filled `buffer` begin, and how long are those that ended.

    `is_whole` [N] says of which rows the first episode is there from its beginning on.
    """
    end, size = spans[-1].stop, buffer.buffer_size
    first = max(spans[0].start, end - size)
    places = np.arange(first, end) % size
    for row in range(buffer.n_envs):
        ends = np.flatnonzero(buffer.dones[places, row])
        starts = np.concatenate([[0], ends + 1])
        for number, (start, last) in enumerate(zip(starts, ends, strict=False)):
            own = places[start : last + 1]
            buffer.ep_start[own, row] = own[0]
            if number or first == 0 or is_whole[row]:
                buffer.ep_length[own, row] = len(own)
        buffer._current_ep_start[row] = (first + starts[-1]) % size
        buffer.ep_start[places[starts[-1] :], row] = buffer._current_ep_start[row]


def _longest_span(buffer: ReplayBuffer) -> int:
    """Steps that a part may hold, which is copied in memory before it is written."""
    a_step = sum(array[0].nbytes for array in _arrays(buffer).values())
    return max(MAX_PART // int(a_step), 1)


def _places(buffer: ReplayBuffer, span: range) -> Any:
    return np.array(span) % buffer.buffer_size


def _pack_span(buffer: ReplayBuffer, span: range) -> bytes:
    places = _places(buffer, span)
    columns: dict[str, Any] = {name: array[places] for name, array in _arrays(buffer).items()}
    columns[FOLLOWING] = {name: one.part(places) for name, one in followings(buffer).items()}
    return pack(columns)


def _arrays(buffer: ReplayBuffer) -> dict[str, np.ndarray]:
    """What `buffer` keeps of each step, by name; of what is shown by name each entry."""
    found: dict[str, np.ndarray] = {}
    for name in COLUMNS:
        kept: Any = getattr(buffer, name, None)
        parts = kept.items() if isinstance(kept, Mapping) else [("", kept)]
        arrays = ((inner, one) for inner, one in parts if isinstance(one, np.ndarray))
        found |= {f"{name}/{inner}" if inner else name: array for inner, array in arrays}
    return found


def _fill(buffer: ReplayBuffer | None, span: range, columns: Mapping[str, Any]) -> None:
    assert buffer is not None
    places = _places(buffer, span)
    if FOLLOWING not in columns:
        raise ValueError("its replay buffer is of an older version")
    for name, array in _arrays(buffer).items():
        array[places] = columns[name]
    for name, one in followings(buffer).items():
        one.fill(places, columns[FOLLOWING][name])
    buffer.pos = span.stop % buffer.buffer_size
    buffer.full = buffer.full or span.stop >= buffer.buffer_size


NUMBERS = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
    "ent_coef",
)
SEEN = ("_last_obs", "_last_episode_starts")
FIRST_FED = ("policy", "policy.optimizer")  # to the hash
MEMORY, REMEMBERED = "_last_lstm_states", "remembered"


def model_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Weights, optimisers, counters, last observations and memory, and what was recorded."""
    numbers = {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)}
    remembered = getattr(getattr(model.policy, "rollout", None), "state", None)
    return {
        "parameters": model.get_parameters(),
        "tensors": lone_tensors(model),
        "numbers": numbers,
        "seen": {name: getattr(model, name) for name in SEEN},
        "memory": tuple(getattr(model, MEMORY, ())),
        **({} if remembered is None else {REMEMBERED: remembered}),
        "recorded": recorded_numbers(model.logger.name_to_value),
    }


def recorded_numbers(recorded: Mapping[Any, Any]) -> dict[str, float]:
    """Those of a logger's values that are numbers: callbacks record texts and pictures, too."""
    found = {}
    for key, value in recorded.items():
        with suppress(Exception):  # of an array, a number too large, or a class of one's own
            if hasattr(value, "__float__"):
                found[str(key)] = float(value)
    return found


def restore_model(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Have `model`, made from the same settings, go on from what `model_state` gave."""
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    for name, tensor in lone_tensors(model).items():  # an optimiser steps these very tensors
        tensor.copy_(state["tensors"][name])
    # The names are those of this file: a file may hold any.
    for name in NUMBERS:
        if hasattr(model, name):
            setattr(model, name, state["numbers"][name])
    for name in SEEN:
        setattr(model, name, state["seen"][name])
    if hasattr(model, MEMORY):
        kind = type(getattr(model, MEMORY))
        on_device = (tuple(t.to(model.device) for t in pair) for pair in state["memory"])
        setattr(model, MEMORY, kind(*on_device))
    if REMEMBERED in state:
        rollout: Any = getattr(model.policy, "rollout", None)
        rollout.state = state[REMEMBERED].to(model.device)
    model.logger.name_to_value.update(state["recorded"])


def lone_tensors(model: BaseAlgorithm) -> dict[str, th.Tensor]:
    """What `model` learns beside its networks, such as SAC's log_ent_coef."""
    return {name: getattr(model, name).detach() for name in model._get_torch_save_params()[1]}


def begin_episodes(model: BaseAlgorithm, observations: Any, begun: Any = None) -> None:
    """Have `model` go on from `observations` [B]; new episodes `begun` [B], if not in all."""
    model._last_obs, before = observations, model._last_episode_starts
    every = np.ones(model.n_envs, np.bool_)
    model._last_episode_starts = every if begun is None or before is None else before | begun


def of_rows(env: WorldVecEnv, model: Mapping[str, Any]) -> dict[str, Any]:
    """What of a process's rows a checkpoint needs; `model` is the state of its model."""
    return {
        "env": env.state(),
        "model": {name: model[name] for name in ("seen", REMEMBERED) if name in model},
    }


def joined(
    env: WorldVecEnv, parts: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the environment, of the model's rows) of all rows, from what `of_rows` gave."""
    models = [part["model"] for part in parts]
    seen = {
        name: _together([model["seen"][name] for model in models]) for name in models[0]["seen"]
    }
    rows: dict[str, Any] = {"seen": seen}
    if REMEMBERED in models[0]:
        rows[REMEMBERED] = th.cat([model[REMEMBERED] for model in models])
    return joined_states(env, [part["env"] for part in parts]), rows


def own_part(
    env: WorldVecEnv, state: Mapping[str, Any], first: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the environment, of the model) of the rows of `env`, the first of them `first`."""
    model, rows = dict(state["model"]), slice(first, first + env.num_envs)
    model["seen"] = {name: _taken(whole, rows) for name, whole in model["seen"].items()}
    if REMEMBERED in model:
        model[REMEMBERED] = model[REMEMBERED][rows]
    return part_of_state(env, state["env"]), model


def _together(parts: Sequence[Any]) -> Any:
    """`parts` of all rows, arrays or dicts of arrays, as one."""
    if isinstance(parts[0], Mapping):
        return {name: _together([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)


def _taken(whole: Any, rows: slice) -> Any:
    if isinstance(whole, Mapping):
        return {name: _taken(part, rows) for name, part in whole.items()}
    return whole[rows]


Space = spaces.Space[Any]


def random_state(drawn_from: Sequence[Space]) -> dict[str, Any]:
    """Where Python's, NumPy's and torch's generators stand, and those of the spaces."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "spaces": [space.np_random.bit_generator.state for space in drawn_from],
        **torch_random(th),
    }


def restore_random(state: Mapping[str, Any], drawn_from: Sequence[Space]) -> None:
    """Set all generators to what `random_state` gave."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    restore_torch_random(th, state)
    for space, kept in zip(drawn_from, state["spaces"], strict=True):
        space.np_random.bit_generator.state = kept


def state_sha256(model: BaseAlgorithm, curriculum_state: Mapping[str, Any]) -> str:
    """SHA-256 over weights, optimisers and curriculum state, equal only if all bits are.

    What the curriculum keeps for its reports alone is left out.
    """
    digest = hashlib.sha256()
    _feed(digest, model.policy.state_dict())
    optimizer = getattr(model.policy, "optimizer", None)
    if optimizer is not None:  # a table has none
        _feed(digest, optimizer.state_dict())
    others = {k: one for k, one in model.get_parameters().items() if k not in FIRST_FED}
    _feed(digest, others | lone_tensors(model))
    learned = {key: value for key, value in curriculum_state.items() if key != REPORTS}
    digest.update(json.dumps(learned, sort_keys=True).encode())
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add `value` with its structure to `digest`."""
    if isinstance(value, th.Tensor):
        array = value.detach().cpu().contiguous().numpy()
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            digest.update(f"{key}:".encode())
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            digest.update(b",")
            _feed(digest, item)
    else:
        digest.update(repr(value).encode())


CODE = "code of aimbot-lab"
LIBRARIES = ("numba", "numpy", "sb3-contrib", "stable-baselines3", "torch")


def versions() -> dict[str, str]:
    """Versions and the processor's instructions; the same ones give the same bits."""
    return {
        "aimbot-lab": aimbot_lab.__version__,
        CODE: code_hash(),
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "processor": th.backends.cpu.get_cpu_capability(),
    }

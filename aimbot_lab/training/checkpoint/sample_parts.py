"""Samples that a model learns from again, in parts of a checkpoint that are written once."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from aimbot_lab.training.algorithms.buffers import KeptRollout, KeptRollouts
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.checkpoint.packing import pack, unpack


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
MAX_PART = 32 * 2**20  # bytes, about


class StepSpan(NamedTuple):
    """Steps of the environments, counted from the training's beginning."""

    first: int
    end: int

    @property
    def name(self) -> str:
        """What the part with these steps is called."""
        return f"replay-{self.first}-{self.end}"


class ReplayParts:
    """The parts that together hold what a model's replay buffer holds; none without a buffer."""

    def __init__(self, model: BaseAlgorithm) -> None:
        self._model = model
        self._spans: list[StepSpan] = []

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
        return {span.name: partial(_pack_span, buffer, span) for span in self._spans}

    def state(self) -> list[list[int]]:
        """The steps that each part holds, as `take` left them."""
        return [list(span) for span in self._spans]

    def resume(self, state: list[list[int]], read_part: Callable[[str], bytes]) -> None:
        """Fill the buffer, which may be larger than it was, with what the parts hold."""
        self._spans = [StepSpan(*steps) for steps in state]
        for span in self._spans:
            _fill(self._buffer, span, unpack(read_part(span.name)))

    def _cover(self, first: int, end: int, longest: int) -> None:
        """Have the spans cover the steps from `first` to `end`."""
        self._spans = [span for span in self._spans if span.end > first]
        done = self._spans[-1].end if self._spans else first
        if done == end:
            return
        new = StepSpan(done, end)
        while self._spans and _length(self._spans[-1]) <= _length(new) <= longest // 2:
            new = StepSpan(max(self._spans.pop().first, first), end)
        self._spans.append(new)


def _length(span: StepSpan) -> int:
    return span.end - span.first


def _longest_span(buffer: ReplayBuffer) -> int:
    """Steps that may be merged into one part."""
    a_step = sum(array[0].nbytes for array in _arrays(buffer).values())
    return max(MAX_PART // int(a_step), 1)


def _places(buffer: ReplayBuffer, span: StepSpan) -> Any:
    return np.arange(span.first, span.end) % buffer.buffer_size


def _pack_span(buffer: ReplayBuffer, span: StepSpan) -> bytes:
    places = _places(buffer, span)
    return pack({name: array[places] for name, array in _arrays(buffer).items()})


def _arrays(buffer: ReplayBuffer) -> dict[str, np.ndarray]:
    """What `buffer` keeps of each step, by name; of what is shown by name each entry."""
    found: dict[str, np.ndarray] = {}
    for name in COLUMNS:
        kept: Any = getattr(buffer, name)
        parts = kept.items() if isinstance(kept, Mapping) else [("", kept)]
        found |= {f"{name}/{inner}" if inner else name: array for inner, array in parts}
    return found


def _fill(buffer: ReplayBuffer | None, span: StepSpan, columns: Mapping[str, Any]) -> None:
    assert buffer is not None
    places = _places(buffer, span)
    for name, array in _arrays(buffer).items():
        array[places] = columns[name]
    buffer.pos = span.end % buffer.buffer_size
    buffer.full = buffer.full or span.end >= buffer.buffer_size

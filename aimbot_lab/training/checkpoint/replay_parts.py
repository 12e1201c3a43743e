"""A replay buffer in parts that are written once, so that a checkpoint need not hold all of it.

Each part holds the transitions of some consecutive steps of the environments. A new one swallows
those before it that are no longer than itself, so that there are few and each transition is
written again a few times only.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from aimbot_lab.training.checkpoint.packing import pack, unpack

COLUMNS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
MAX_PART = 32 * 2**20  # bytes, about


class Span(NamedTuple):
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
        self._spans: list[Span] = []

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
        self._spans = [Span(*steps) for steps in state]
        for span in self._spans:
            _fill(self._buffer, span, unpack(read_part(span.name)))

    def _cover(self, first: int, end: int, longest: int) -> None:
        """Have the spans cover the steps from `first` to `end`."""
        self._spans = [span for span in self._spans if span.end > first]
        done = self._spans[-1].end if self._spans else first
        if done == end:
            return
        new = Span(done, end)
        while self._spans and _length(self._spans[-1]) <= _length(new) <= longest // 2:
            new = Span(max(self._spans.pop().first, first), end)
        self._spans.append(new)


def _length(span: Span) -> int:
    return span.end - span.first


def _longest_span(buffer: ReplayBuffer) -> int:
    """Steps that may be merged into one part."""
    a_step = sum(getattr(buffer, name)[0].nbytes for name in COLUMNS)
    return max(MAX_PART // int(a_step), 1)


def _places(buffer: ReplayBuffer, span: Span) -> Any:
    return np.arange(span.first, span.end) % buffer.buffer_size


def _pack_span(buffer: ReplayBuffer, span: Span) -> bytes:
    places = _places(buffer, span)
    return pack({name: getattr(buffer, name)[places] for name in COLUMNS})


def _fill(buffer: ReplayBuffer | None, span: Span, columns: Mapping[str, Any]) -> None:
    assert buffer is not None
    places = _places(buffer, span)
    for name in COLUMNS:
        getattr(buffer, name)[places] = columns[name]
    buffer.pos = span.end % buffer.buffer_size
    buffer.full = buffer.full or span.end >= buffer.buffer_size

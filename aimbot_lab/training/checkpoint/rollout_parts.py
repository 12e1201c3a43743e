"""Rollouts that later updates draw from, in parts of a checkpoint: each is written once."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm

from aimbot_lab.training.algorithms.buffers import KeptRollout, KeptRollouts
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.checkpoint.replay_parts import ReplayParts


class SampleParts(Protocol):
    """Samples that a model learns from again, as parts of a checkpoint."""

    def take(self) -> Mapping[str, Callable[[], bytes]]:
        """The parts as they stand now, by name, each with what makes it."""
        ...

    def state(self) -> Any:
        """Which parts there are, as `take` left them."""
        ...

    def resume(self, state: Any, read_part: Callable[[str], bytes]) -> None:
        """Have the model hold what the parts hold that `state` gave."""
        ...


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

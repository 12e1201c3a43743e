"""Ends a training in the middle of an update, between two of its gradient steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from torch.optim import Optimizer

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO


class StoppedInUpdate(Exception):  # noqa: N818 not an error: someone asked for it
    """The training was asked to stop while it made an update; the rest of that is left out."""


@contextmanager
def stoppable_updates(model: BaseAlgorithm, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Ask `should_stop` before every gradient step of `model` while the block runs.

    Raises StoppedInUpdate out of the block where it says so. What the update has changed by then
    stays: a resumption begins at the last checkpoint, which knows nothing of it.
    """

    def ask(*_: Any) -> None:
        if should_stop():
            raise StoppedInUpdate

    hooks = [one.register_step_pre_hook(ask) for one in optimizers(model)]
    engine = model.engine if isinstance(model, HybridPPO) else None
    if engine is not None:
        engine.before_step = ask
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        if engine is not None:
            engine.before_step = None


def optimizers(model: BaseAlgorithm) -> list[Optimizer]:
    """Everything that steps along a gradient of `model`."""
    found = [getattr(model.policy, "optimizer", None)]
    return [one for one in found if isinstance(one, Optimizer)]

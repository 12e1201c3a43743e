"""How a training ends before its last step: no lesson is left, a stop, weights that diverged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from torch.optim import Optimizer

from aimbot_lab.foundation.errors import (
    ForeignCodeError,
    LabError,
    RunFailedError,
    reason_and_place,
)
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.registry import foreign_failure
from aimbot_lab.training.settings import TrainingPlan


class TrainingOver(Exception):  # noqa: N818 not an error: nothing is left to learn, or wanted
    """A training ends where a rollout would begin, which stable-baselines3 can't do by itself."""


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
    holders: list[Any] = [
        model.policy,
        getattr(model, "actor", None),
        getattr(model, "critic", None),
    ]
    found = [getattr(one, "optimizer", None) for one in holders]
    found.append(getattr(model, "ent_coef_optimizer", None))
    return [one for one in found if isinstance(one, Optimizer)]


def is_finite(model: BaseAlgorithm) -> bool:
    """Whether all weights are finite."""
    return all(bool(th.isfinite(weight).all()) for weight in model.policy.parameters())


def diverged(model: BaseAlgorithm) -> RunFailedError:
    """The end of a training whose weights contain NaN or infinity."""
    return RunFailedError(
        f"training diverged at step {model.num_timesteps:,}: the network's weights are no "
        "numbers any more; lower train.learning_rate or train.reward_scale"
    )


def failure(model: BaseAlgorithm, error: BaseException, plan: TrainingPlan) -> LabError | None:
    """What `error` means for a person; None for an unforeseen one, and for a LabError."""
    if isinstance(error, LabError):
        return None
    found = _of_numbers(model, error) if isinstance(error, ValueError | RuntimeError) else None
    found = found or foreign_failure(plan.train, error, env=plan.env)
    if found is None and isinstance(error, SystemExit):
        return ForeignCodeError(f"code that the training called raised {reason_and_place(error)}")
    return found


def _of_numbers(model: BaseAlgorithm, error: Exception) -> RunFailedError | None:
    if not is_finite(model):  # torch refuses a distribution of NaN
        return diverged(model)
    if "overflow" not in str(error):
        return None
    return RunFailedError(
        f"training failed at step {model.num_timesteps:,}: a number of the update is too large "
        "for 32 bits; lower train.learning_rate or train.reward_scale"
    )

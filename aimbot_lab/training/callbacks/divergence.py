"""Trainings whose numbers have left the range that 32 bits hold, in a line for a person."""

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm

from aimbot_lab.foundation.errors import (
    ForeignCodeError,
    LabError,
    RunFailedError,
    reason_and_place,
)
from aimbot_lab.training.foreign_failures import foreign_failure
from aimbot_lab.training.plan import TrainingPlan


def is_finite(model: BaseAlgorithm) -> bool:
    """Whether all weights are numbers."""
    return all(bool(th.isfinite(weight).all()) for weight in model.policy.parameters())


def diverged(model: BaseAlgorithm) -> RunFailedError:
    """The end of a training whose weights are no numbers."""
    return RunFailedError(
        f"training diverged at step {model.num_timesteps:,}: the network's weights are no "
        "numbers any more; lower train.learning_rate or train.reward_scale"
    )


def failure(model: BaseAlgorithm, error: BaseException, plan: TrainingPlan) -> LabError | None:
    """What `error` means for a person; None for one that nobody foresaw, and for a LabError."""
    if isinstance(error, LabError):
        return None
    found = _of_numbers(model, error) if isinstance(error, ValueError | RuntimeError) else None
    found = found or foreign_failure(plan.train, error, env=plan.env)
    if found is None and isinstance(error, SystemExit):
        return ForeignCodeError(f"code that the training called raised {reason_and_place(error)}")
    return found


def _of_numbers(model: BaseAlgorithm, error: Exception) -> RunFailedError | None:
    if not is_finite(model):  # torch refuses a distribution of what are no numbers any more
        return diverged(model)
    if "overflow" not in str(error):
        return None
    return RunFailedError(
        f"training failed at step {model.num_timesteps:,}: a number of the update is too large "
        "for 32 bits; lower train.learning_rate or train.reward_scale"
    )

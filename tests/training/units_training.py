"""Small trainings in an arena that shows units, and the rollout that an update would begin with."""

from typing import Any

from tiny_training import learn
from torch import nn

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.encoders import ScaledFeatures, UnitFeatures
from aimbot_lab.training.networks.settings import NetworkSettings, UnitsSettings
from aimbot_lab.training.settings import TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings, ObservationSettings

ENCODED = NetworkSettings(
    layers=(12,), scalars=(10,), units=UnitsSettings(layers=(9, 8), keys=5), activation="relu"
)
ROWS, STEPS = 8, 32


def units_plan(*, env: dict[str, Any] | None = None, **train: Any) -> TrainingPlan:
    settings = {
        "algo": "hybrid_ppo",
        "total_steps": ROWS * STEPS,
        "n_steps": STEPS,
        "batch_size": 128,
        "n_epochs": 1,
        "engine": "torch",
        "network": ENCODED,
        **train,
    }
    arena = {
        "num_envs": ROWS,
        "time_limit": 2.0,
        "observation": ObservationSettings(units=True),
        **(env or {}),
    }
    return TrainingPlan(
        seed=3,
        env=ArenaSettings(**arena),
        lessons=(Lesson(name="one", targets={"free": 1.0}),),
        train=TrainSettings(**settings),
    )


def _compute_in_double(policy: nn.Module) -> None:
    """Let all weights have 64 bits; what goes into the first of them is widened, bit for bit."""
    for weight in policy.parameters():
        weight.data = weight.data.double()
    for module in policy.modules():
        if isinstance(module, ScaledFeatures):
            module.register_forward_hook(lambda _, __, features: features.double())
        elif isinstance(module, UnitFeatures):
            module.register_forward_hook(lambda _, __, units: (units[0].double(), units[1]))
    memory = getattr(policy, "rollout", None)
    if memory is not None:
        empty = memory.empty
        memory.empty = lambda *form: empty(*form).double()


def learned(plan: TrainingPlan) -> Training:
    training = Training(plan)
    learn(training)
    return training


def with_rollout(plan: TrainingPlan, *, double: bool = False) -> HybridPPO:
    """The model of `plan` after its first rollout, before anything is learned from it.

    With `double` its layers compute with 64 bits, so that sums of another order are the same.
    """
    training = Training(plan)
    model = training.model
    assert isinstance(model, HybridPPO)
    if double:
        _compute_in_double(model.policy)
    model.engine.update = lambda *_args, **_named: None  # type: ignore[method-assign]
    learn(training)
    return model

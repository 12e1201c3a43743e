"""Small trainings in an arena that shows units, and the rollout that an update would begin with."""

from typing import Any

from tiny_training import Sink

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.networks.settings import NetworkSettings, UnitsSettings
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
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


def learned(plan: TrainingPlan) -> Training:
    training = Training(plan)
    training.learn(Sink(), SilentObserver(), lambda: False)
    return training


def with_rollout(plan: TrainingPlan) -> HybridPPO:
    """The model of `plan` after its first rollout, before anything is learned from it."""
    training = Training(plan)
    model = training.model
    assert isinstance(model, HybridPPO)
    model.engine.update = lambda *_args, **_named: None  # type: ignore[method-assign]
    training.learn(Sink(), SilentObserver(), lambda: False)
    return model

"""Hyper-parameters that follow a schedule."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from sb3_contrib import TRPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.utils import LinearSchedule
from tiny_training import Sink, learn, plan

from aimbot_lab.training.settings import Cosine, Linear, TrainSettings
from aimbot_lab.training.training import Training

LINE = Linear(start=1e-3, end=1e-4)


@pytest.mark.parametrize(("ends", "end_fraction"), [((1e-3, 1e-4), 1.0), ((0.0, 0.3), 0.25)])
def test_linear_is_stable_baselines3s(ends: tuple[float, float], end_fraction: float) -> None:
    ours = Linear(start=ends[0], end=ends[1], end_fraction=end_fraction)
    theirs = LinearSchedule(*ends, end_fraction)
    for left in (1.0, 0.9, 0.75, 0.5, 0.1, 0.0):
        assert ours(left) == pytest.approx(theirs(left), rel=1e-12)


def test_cosine_is_half_a_wave_and_schedules_stay_at_their_ends() -> None:
    wave, half = Cosine(start=3.0, end=1.0), 0.5**0.5
    values = [wave(left) for left in (1.0, 0.75, 0.5, 0.25, 0.0)]
    assert values == pytest.approx([3.0, 2.0 + half, 2.0, 2.0 - half, 1.0], rel=1e-12)
    for kind in (Linear, Cosine):
        short = kind(start=1.0, end=0.0, end_fraction=0.5)
        # A rollout that was begun is finished, so that less than nothing may be left.
        ends = [short(left) for left in (0.5, 0.3, 0.0, -0.1)]
        assert ends == pytest.approx([0.0] * 4, abs=1e-12)


def test_settings_read_numbers_and_schedules_and_write_them_back() -> None:
    adapter = TypeAdapter(TrainSettings)
    given = {
        "learning_rate": {"schedule": "linear", "start": 1e-3, "end": 1e-4, "end_fraction": 0.5},
        "ent_coef": {"schedule": "cosine", "start": 0.03, "end": 0},
        "clip_range": 0.1,
    }
    read = adapter.validate_python(given)
    assert read.learning_rate == Linear(start=1e-3, end=1e-4, end_fraction=0.5)
    assert read.ent_coef == Cosine(start=0.03, end=0.0)
    assert read.clip_range == 0.1
    assert adapter.validate_python(adapter.dump_python(read)) == read
    with pytest.raises(ValidationError, match="start must be greater than 0"):
        Linear(start=0.0, end=0.0)


class Watch(BaseCallback):
    """What a model holds when its update begins and after it."""

    def __init__(self) -> None:
        super().__init__()
        self.entropy: list[float] = []
        self.recorded: list[dict[str, float]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.entropy.append(self.model.ent_coef)

    def _on_rollout_start(self) -> None:
        self.recorded.append(dict(self.logger.name_to_value))


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo"])
def test_the_update_uses_the_values_of_its_progress(
    algo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = {
        "learning_rate": LINE,
        "clip_range": Linear(start=0.3, end=0.1),
        "ent_coef": Linear(start=0.04, end=0.0),
    }
    training, watch = Training(plan(algo, total_steps=2048, **schedules)), Watch()
    assert training.model.ent_coef == 0.04
    sink, model_learns = Sink(), training.model.learn

    def watched(steps: int, callback: Any, **how: Any) -> Any:
        return model_learns(steps, CallbackList([*callback.callbacks, watch]), **how)

    monkeypatch.setattr(training.model, "learn", watched)
    learn(training, sink)
    assert watch.entropy == pytest.approx([0.03, 0.02, 0.01, 0.0])
    rates = [seen["train/learning_rate"] for seen in watch.recorded[1:]]
    assert rates == pytest.approx([7.75e-4, 5.5e-4, 3.25e-4])
    ranges = [seen["train/clip_range"] for seen in watch.recorded[1:]]
    assert ranges == pytest.approx([0.25, 0.2, 0.15])
    assert sink.logged[-1][1]["train/ent_coef"] == 0.0
    assert sink.logged[-1][1]["train/learning_rate"] == pytest.approx(1e-4)


@pytest.mark.parametrize("algo", ["trpo", "dqn"])
def test_other_algorithms_schedule_their_learning_rate(algo: str) -> None:
    training, sink = Training(plan(algo, total_steps=1024, learning_rate=LINE)), Sink()
    learn(training, sink)
    assert sink.logged[-1][1]["train/learning_rate"] == pytest.approx(1e-4)
    (group,) = training.model.policy.optimizer.param_groups
    assert group["lr"] == pytest.approx(1e-4)
    assert isinstance(training.model, TRPO) == (algo == "trpo")

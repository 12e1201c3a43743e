"""`train.samples.keep`: updates that also draw from the rollouts before the last."""

from typing import Any

import numpy as np
import pytest
import torch as th
from tiny_training import Sink, plan
from units_training import ROWS, STEPS, units_plan

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import evaluated, update
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import SamplesSettings, TrainingPlan
from aimbot_lab.training.training import Training

KEEP, ROLLOUTS = 3, 5
REMEMBERING = NetworkSettings(
    layers=(8,),
    scalars=(9,),
    units=UnitsSettings(layers=(6,)),
    memory=MemorySettings(size=7, sequence_length=8, burn_in=8),
)
SWITCHES: dict[str, Any] = {
    "target": "attention",
    "aim": "hybrid",
    "masks": True,
    "objective": "per_branch",
    "dual_clip": 3.0,
}


def kept_plan(keep: int = KEEP, **more: Any) -> TrainingPlan:
    return units_plan(
        env={"time_limit": 0.7},
        total_steps=ROWS * STEPS * ROLLOUTS,
        batch_size=64,
        samples=SamplesSettings(keep=keep),
        **more,
    )


class Watched:
    """What every update of a training is given; `learns` says whether it learns from it."""

    def __init__(self, plan: TrainingPlan, *, learns: bool) -> None:
        self.buffers: list[Any] = []
        self.training = Training(plan)
        self.model: Any = self.training.model
        self._learns = learns
        self.model.engine.update = self._update
        self.training.learn(Sink(), SilentObserver(), lambda: False)

    def _update(self, model: HybridPPO, *, dual_clip: float | None) -> None:
        self.buffers.append(model.rollout_buffer)
        if self._learns:
            update(model, dual_clip=dual_clip)


def drawn(buffer: Any, name: str) -> np.ndarray:
    """All that an epoch draws of one column, sorted."""
    parts = [getattr(data, name) for data in buffer.get(64)]
    return np.sort(th.cat(parts).numpy().ravel())


def test_every_kept_sample_counts_once_an_epoch_as_it_was_when_it_was_made() -> None:
    watched = Watched(kept_plan(network=NetworkSettings(layers=(8,))), learns=True)
    alone: list[dict[str, np.ndarray]] = []
    for number, buffer in enumerate(watched.buffers):
        whole = {name: drawn(buffer, name) for name in ("old_log_prob", "returns", "advantages")}
        rollouts = min(number + 1, KEEP)
        size = ROWS * STEPS
        assert {len(column) for column in whole.values()} == {rollouts * size}
        newest = columns_of(buffer, rollouts - 1)
        alone.append(newest)
        for name, column in whole.items():
            expected = np.concatenate([one[name] for one in alone[-rollouts:]])
            np.testing.assert_array_equal(column, np.sort(expected.ravel()))


def columns_of(buffer: Any, place: int) -> dict[str, np.ndarray]:
    """The samples of the rollout at `place` among those of `buffer`, environment by environment."""
    samples = slice(place * ROWS * STEPS, (place + 1) * ROWS * STEPS)
    return {
        "old_log_prob": buffer.log_probs[samples],
        "returns": buffer.returns[samples],
        "advantages": buffer.advantages[samples],
    }


@pytest.mark.parametrize("remembers", [False, True])
def test_with_unchanged_weights_all_that_is_kept_is_as_likely_as_when_it_was_made(
    remembers: bool,
) -> None:
    """So that states, resets, burn-in and order of older rollouts are theirs."""
    network = REMEMBERING if remembers else NetworkSettings(layers=(8,))
    watched = Watched(kept_plan(network=network, **(SWITCHES if remembers else {})), learns=False)
    watched.model.policy.set_training_mode(True)
    buffer, count = watched.buffers[-1], 0
    for data in buffer.get(64):
        values, log_prob, _ = evaluated(watched.model, data)
        for now, then in ((log_prob, data.old_log_prob), (values.flatten(), data.old_values)):
            assert float((now - then).detach().abs().max()) <= 1e-5
        count += len(data.returns)
    assert count == KEEP * ROWS * STEPS


def test_an_update_reports_the_share_that_dual_clip_touches() -> None:
    sink = Sink()
    settings = {"dual_clip": 1.01, "learning_rate": 0.05, "samples": SamplesSettings(keep=KEEP)}
    Training(plan("hybrid_ppo", total_steps=1536, **settings)).learn(
        sink, SilentObserver(), lambda: False
    )
    shares = [metrics["train/dual_clip_fraction"] for _, metrics in sink.logged]
    assert 0 < max(shares) < 1
    sink = Sink()
    Training(plan("hybrid_ppo", engine="torch", total_steps=512)).learn(
        sink, SilentObserver(), lambda: False
    )
    assert not any("train/dual_clip_fraction" in metrics for _, metrics in sink.logged)

"""`train.samples.keep`: updates that also draw from the rollouts before the last."""

from typing import Any

import numpy as np
import pytest
import torch as th
from tiny_training import Sink, learn, plan
from units_training import ROWS, STEPS, units_plan

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import evaluated, update
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
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
    **{"target": "attention", "aim": "hybrid", "masks": True, "objective": "per_branch"},
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
        learn(self.training)

    def _update(self, model: HybridPPO, *, dual_clip: float | None) -> None:
        self.buffers.append(model.rollout_buffer)
        if self._learns:
            update(model, dual_clip=dual_clip)


def test_every_kept_sample_counts_once_an_epoch_as_it_was_when_it_was_made() -> None:
    watched = Watched(kept_plan(network=NetworkSettings(layers=(8,))), learns=True)
    size, names = ROWS * STEPS, {"old_log_prob": "log_probs", "returns": "returns"}
    names["advantages"] = "advantages"
    for name, column in names.items():
        alone: list[np.ndarray] = []
        for number, buffer in enumerate(watched.buffers):
            rollouts = min(number + 1, KEEP)
            drawn = np.sort(th.cat([getattr(one, name) for one in buffer.get(64)]).numpy().ravel())
            assert len(drawn) == rollouts * size
            alone.append(getattr(buffer, column)[(rollouts - 1) * size : rollouts * size])  # newest
            expected = np.concatenate(alone[-rollouts:])
            np.testing.assert_array_equal(drawn, np.sort(expected.ravel()))


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
    clipped = {"dual_clip": 1.01, "learning_rate": 0.05, "samples": SamplesSettings(keep=KEEP)}
    for given in ({"total_steps": 1536, **clipped}, {"total_steps": 512, "engine": "torch"}):
        learn(Training(plan("hybrid_ppo", **given)), sink := Sink())
        name = "train/dual_clip_fraction"
        shares = [metrics[name] for _, metrics in sink.logged if name in metrics]
        assert 0 < max(shares) < 1 if "dual_clip" in given else shares == []

"""What changes between rollouts beside the weights: scheduled numbers and running statistics."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from torch.nn import Module

from aimbot_lab.foundation.world import Float32Array, columns_of
from aimbot_lab.training.networks.encoders import Moments, ScaledFeatures, together
from aimbot_lab.training.processes.exchange import Alone, of_all_shards, one_shard
from aimbot_lab.training.settings import Cosine, Linear, Schedule, TrainSettings


def adjustments(settings: TrainSettings, policy: Module) -> list[BaseCallback]:
    """The callbacks that `settings` and the features of `policy` ask for."""
    callbacks: list[BaseCallback] = []
    if isinstance(settings.ent_coef, Linear | Cosine):
        callbacks.append(EntropyScheduleCallback(settings.ent_coef))
    if any(features.statistics is not None for features in scaled_features(policy)):
        callbacks.append(StatisticsCallback())
    if settings.options.get("action_noise") is not None or settings.options.get("use_sde"):
        callbacks.append(NoiseCallback())
    return callbacks


def schedule_jumps(
    model: BaseAlgorithm, train: TrainSettings, *, before: int
) -> dict[str, tuple[float, float]]:
    """The numbers of `model` that its schedules had when `before` steps were to be taken, and now.

    By the names of the settings of `train`, for those that differ.
    """
    step = model.num_timesteps
    named = {f"train.{one.name}": getattr(train, one.name) for one in fields(train)}
    named["the exploration rate"] = getattr(model, "exploration_schedule", None)
    left = [max(1.0 - step / total, 0.0) for total in (before, train.total_steps)]
    schedules = {name: value for name, value in named.items() if callable(value)}
    pairs = {name: (float(at(left[0])), float(at(left[1]))) for name, at in schedules.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def scaled_features(policy: Module) -> list[ScaledFeatures]:
    """All of `policy`; a network and its target network have one each."""
    return [module for module in policy.modules() if isinstance(module, ScaledFeatures)]


class EntropyScheduleCallback(BaseCallback):
    """Sets `ent_coef` before each update, which stable-baselines3 takes as a number only.

    The learning rate and the clip range need no callback: it takes callables for these, and asks
    them at the same progress.
    """

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def _on_step(self) -> bool:
        return True

    def _on_training_start(self) -> None:
        self._set()  # a training that goes on does not begin at the schedule's start

    def _on_rollout_end(self) -> None:
        self._set()

    def _set(self) -> None:
        model = self.model
        assert isinstance(model, OnPolicyAlgorithm)
        model.ent_coef = self._schedule(1.0 - model.num_timesteps / model._total_timesteps)

    def _on_rollout_start(self) -> None:
        self._record()

    def _on_training_end(self) -> None:
        self._record()

    def _record(self) -> None:
        """Not before the update: stable-baselines3 empties its records between rollout and it."""
        assert isinstance(self.model, OnPolicyAlgorithm)
        self.logger.record("train/ent_coef", self.model.ent_coef)


EXPLORATIONS = ("exploration_mat", "exploration_matrices")


class NoiseCallback(BaseCallback):
    """Noise on actions goes on where it was; stable-baselines3 resets it where learning begins.

    That of gSDE is drawn where a rollout begins, before anything can be kept or put back there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._before: Mapping[str, Any] | None = None

    @property
    def _noises(self) -> list[Any]:
        """Those that depend on their last values."""
        noise = getattr(self.model, "action_noise", None)
        return [one for one in getattr(noise, "noises", [noise]) if hasattr(one, "noise_prev")]

    @property
    def _explorations(self) -> dict[str, th.Tensor]:
        """The noise of gSDE: of one action, and of each environment's."""
        acting: Any = getattr(self.model, "actor", None) or self.model.policy
        drawn = vars(getattr(acting, "action_dist", None) or object).items()
        return {name: one for name, one in drawn if name in EXPLORATIONS}

    def state(self) -> dict[str, Any]:
        """The last values of each environment's noise, and what comes after them."""
        return {
            "last": [one.noise_prev for one in self._noises],
            "explorations": {name: one.detach() for name, one in self._explorations.items()},
            "torch": th.get_rng_state(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave, once the training starts."""
        self._before = state

    def _on_training_start(self) -> None:
        if self._before is not None:
            for one, before in zip(self._noises, self._before["last"], strict=True):
                one.noise_prev = before

    def _on_rollout_start(self) -> None:
        before, self._before = self._before, None
        if before is not None and before["explorations"]:
            acting: Any = getattr(self.model, "actor", None) or self.model.policy
            for name, one in before["explorations"].items():
                setattr(acting.action_dist, name, one.to(self.model.device))
            th.set_rng_state(before["torch"])

    def _on_step(self) -> bool:
        return True


class StatisticsCallback(BaseCallback):
    """Counts a rollout's observations into the policy's running statistics after its update.

    Not earlier: the update compares log-probabilities with those of the rollout, which were made
    with the old statistics. Nothing is pending where a rollout begins; after the last one its
    observations are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: Moments | None = None

    def state(self) -> list[Any] | None:
        """What is pending."""
        return None if self._seen is None else list(self._seen)

    def resume(self, state: Sequence[Any] | None) -> None:
        """Go on from what `state()` gave."""
        self._seen = None if state is None else Moments(*state)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        found = [self._features()[0].moments(rows) for rows in self._observations()]
        exchange = getattr(self.model, "exchange", Alone())
        own = np.array([np.concatenate([one.mean, one.variance]) for one in found])
        halves = (np.split(one, 2) for one in of_all_shards(own, exchange))
        each = (Moments(mean, variance, found[0].rows) for mean, variance in halves)
        self._seen = reduce(together, each)

    def _on_rollout_start(self) -> None:
        if self._seen is None:
            return
        for features in self._features():
            if features.statistics is not None:
                features.statistics.fold(self._seen)
        self._seen = None

    def _features(self) -> list[ScaledFeatures]:
        return scaled_features(self.model.policy)

    def _observations(self) -> list[Float32Array]:
        """Those of the last rollout [N, D], shard by shard."""
        model = self.model
        shards = getattr(model, "shards", one_shard(model.n_envs))
        if isinstance(model, OnPolicyAlgorithm):
            observations: Any = model.rollout_buffer.observations
        else:
            assert isinstance(model, OffPolicyAlgorithm)
            buffer = model.replay_buffer
            assert buffer is not None
            steps = min(model.train_freq.frequency, buffer.buffer_size)  # type: ignore[union-attr]
            observations, last = buffer.observations, np.arange(buffer.pos - steps, buffer.pos)
            if isinstance(observations, dict):
                observations = {name: part[last] for name, part in observations.items()}
            else:
                observations = observations[last]
        if isinstance(observations, dict):  # block by block, beside pictures
            plain = [part for part in observations.values() if part.dtype == np.float32]
            observations = np.concatenate(plain, axis=-1)
        columns = columns_of(observations)
        blocks = np.split(columns, shards.here, axis=1)
        return [block.reshape(-1, columns.shape[-1]) for block in blocks]

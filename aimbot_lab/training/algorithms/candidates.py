"""Augmented random search of sb3-contrib, with its rollouts where others have theirs.

Source: Mania, Guy & Recht 2018, "Simple random search provides a competitive approach to
reinforcement learning". An update plays whole episodes of several candidates, one after the other.
"""

from contextlib import suppress
from typing import Any

import torch as th
from sb3_contrib import ARS
from sb3_contrib.ars.policies import ARSPolicy
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor


class _Stopped(Exception):  # noqa: N818 not an error: a callback asked for it
    """A candidate's episode is broken off."""


class _DuringUpdate:
    """The callback of an update whose rollout has begun; it may break the update off."""

    def __init__(self, callback: BaseCallback) -> None:
        self._callback = callback

    def on_rollout_start(self) -> None:
        """It has begun before."""

    def on_rollout_end(self) -> None:
        """All candidates have played; what callbacks recorded meanwhile goes where it is kept."""
        self._callback.on_rollout_end()
        self._callback.logger.dump(self._callback.num_timesteps)

    def update_locals(self, locals_: dict[str, Any]) -> None:
        """Show what stands in the loop, by the names that it has with other algorithms."""
        self._callback.update_locals({**locals_, "new_obs": locals_["new_observations"]})

    def on_step(self) -> bool:
        """Raise _Stopped where the training is to end."""
        if not self._callback.on_step():
            self._callback.on_training_end()
            raise _Stopped
        return True


class CandidateSearch(ARS):
    """ARS whose rollouts begin before the candidates are drawn, so that all can be kept there."""

    def _do_one_update(self, callback: BaseCallback, async_eval: Any) -> None:
        callback.on_rollout_start()
        super()._do_one_update(_DuringUpdate(callback), async_eval)  # type: ignore[arg-type]

    def learn(self, *given: Any, **named: Any) -> "CandidateSearch":
        """Search until all steps are taken or a callback ends it."""
        with suppress(_Stopped):
            super().learn(*given, **named)
        return self

    def _trigger_callback(self, _locals: Any, _globals: Any, callback: Any, n_envs: int) -> None:
        callback.update_locals(_locals)
        super()._trigger_callback(_locals, _globals, callback, n_envs)

    def dump_logs(self) -> None:
        """Leave what was recorded for where the next rollout begins."""

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        del total_timesteps  # of a training that goes on, those that were left
        super()._update_current_progress_remaining(num_timesteps, self._total_timesteps)

    def set_parameters(self, *given: Any, **named: Any) -> None:
        """Those of the policy are what the search goes on from."""
        super().set_parameters(*given, **named)
        weights = th.nn.utils.parameters_to_vector(self.policy.parameters()).detach()
        self.weights = weights  # type: ignore[assignment]


class CandidatePolicy(ARSPolicy):
    """ARS's policy with features, made with the arguments that other policies are made with."""

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Any = None,
        *,
        features_extractor_class: Any = FlattenExtractor,
        **arguments: Any,
    ) -> None:
        del lr_schedule
        self._features = features_extractor_class
        super().__init__(observation_space, action_space, **arguments)

    def make_features_extractor(self) -> BaseFeaturesExtractor:
        """The features of the network."""
        made: BaseFeaturesExtractor = self._features(self.observation_space)
        return made

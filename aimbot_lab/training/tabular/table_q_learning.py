"""Q-learning with a table of action values, as an algorithm of stable-baselines3."""

from typing import Any, NamedTuple, Self

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, PyTorchObs, Schedule
from stable_baselines3.common.utils import LinearSchedule

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BoolArray, Float32Array, StateTable
from aimbot_lab.training.tabular.core.q_values import (
    Floats32,
    Ints,
    choose_actions,
    learn_step,
    write_best,
    write_states,
)


class TablePolicy(BasePolicy):
    """Plays the action of the highest value in the table's row of the observed state.

    `values` is the table [S, A] in NumPy; it shares its memory with the parameter `table`, through
    which it is saved and loaded.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        *,
        states: StateTable | None = None,
    ) -> None:
        super().__init__(observation_space, action_space)
        del lr_schedule
        if states is None:
            raise ConfigurationError("train.algo: a table needs a world whose states are numbered")
        self.states = states
        self.table = th.nn.Parameter(
            th.zeros(states.size, int(action_space.n)), requires_grad=False
        )

    @property
    def values(self) -> Floats32:
        """The table [S, A]; what is written to it is learned."""
        values: Floats32 = self.table.detach().numpy()
        return values

    def state_numbers(self, observations: Float32Array, states: Ints) -> None:
        """Write the numbers of the states that `observations` [N, D] show to `states` [N]."""
        write_states(observations, self.states, states)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        assert isinstance(observation, th.Tensor)
        del deterministic  # exploration is the training's
        states = np.zeros(len(observation), np.int64)
        actions = np.zeros(len(observation), np.int64)
        self.state_numbers(observation.numpy(), states)
        write_best(self.values, states, actions)
        return th.from_numpy(actions)


class Rows(NamedTuple):
    """What one step of all N environments is worked out in."""

    states: Ints  # [N]
    next_states: Ints  # [N]
    actions: Ints  # [N]


class TableQLearning(BaseAlgorithm):
    """Q-learning (Watkins 1989): every step of every environment moves one value of a table.

    Explores as stable-baselines3's DQN does: any action with a probability that falls in a line
    from `exploration_initial_eps` to `exploration_final_eps` over `exploration_fraction` of the
    steps. A rollout of `n_steps` only says how often others hear of the training.
    """

    policy: TablePolicy

    def __init__(
        self,
        policy: type[TablePolicy],
        env: GymEnv | None,
        *,
        n_steps: int = 128,
        gamma: float = 0.99,
        exploration_fraction: float = 0.1,
        exploration_initial_eps: float = 1.0,
        exploration_final_eps: float = 0.05,
        **arguments: Any,
    ) -> None:
        fixed: dict[str, Any] = {"supported_action_spaces": (spaces.Discrete,)}
        super().__init__(policy, env, **fixed, support_multi_env=True, **arguments)
        if not 0.0 < exploration_fraction <= 1.0:
            what = "must be greater than 0 and at most 1"
            raise ValueError(f"exploration_fraction {what} (got {exploration_fraction:g})")
        if not 0.0 <= exploration_final_eps <= exploration_initial_eps <= 1.0:
            what = f"(got {exploration_initial_eps:g} and {exploration_final_eps:g})"
            raise ValueError(f"exploration must fall within 0 to 1 {what}")
        self.n_steps, self.gamma = n_steps, gamma
        self.exploration_schedule = LinearSchedule(
            exploration_initial_eps, exploration_final_eps, exploration_fraction
        )
        self.exploration_rate = exploration_initial_eps
        self._setup_model()

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
        self._key = np.uint64(derive_seed(self.seed or 0, "exploration") % 2**64)
        self._rows = Rows(*(np.zeros(self.n_envs, np.int64) for _ in Rows._fields))

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy"], []

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_rows"]

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 1,
        tb_log_name: str = "QLearning",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn for `total_timesteps` of all environments, or until `callback` ends it."""
        del log_interval
        total, heard = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        heard.on_training_start(locals() | {"total_timesteps": total}, globals())
        while self.num_timesteps < total and self._rollout(heard):
            pass
        heard.on_training_end()
        return self

    def _rollout(self, callback: BaseCallback) -> bool:
        """Take `n_steps` steps and learn from each; False where `callback` ended it."""
        callback.on_rollout_start()
        self._set_progress()
        learning_rate, errors = float(self.lr_schedule(self._current_progress_remaining)), 0.0
        for _ in range(self.n_steps):
            errors += self._step(learning_rate)
            callback.update_locals({"self": self})
            if not callback.on_step():
                return False
        self._n_updates += self.n_steps
        self.logger.record("train/n_updates", self._n_updates)
        self.logger.record("train/loss", errors / self.n_steps)
        self.logger.record("train/learning_rate", learning_rate)
        self.logger.record("train/exploration_rate", self.exploration_rate)
        callback.on_rollout_end()
        return True

    def _set_progress(self) -> None:
        self._update_current_progress_remaining(self.num_timesteps, self._total_timesteps)
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)

    def _step(self, learning_rate: float) -> float:
        """Take one step of all environments; the mean squared error of the values it moved."""
        rows, policy, env = self._rows, self.policy, self.env
        assert env is not None
        seen: Any = self._last_obs
        self._set_progress()
        policy.state_numbers(seen, rows.states)
        draw = self._key, self.num_timesteps // self.n_envs
        choose_actions(policy.values, rows.states, self.exploration_rate, draw, rows.actions)
        after, rewards, finished, infos = env.step(rows.actions)
        self.num_timesteps += self.n_envs
        assert isinstance(after, np.ndarray)
        policy.state_numbers(after, rows.next_states)
        terminated = self._without_cut_off(finished, infos)
        transitions = rows.states, rows.actions, rewards, rows.next_states, terminated
        error: float = learn_step(policy.values, transitions, learning_rate, self.gamma)
        self._last_obs, self._last_episode_starts = after, finished
        return error

    def _without_cut_off(self, finished: BoolArray, infos: list[dict[str, Any]]) -> BoolArray:
        """Which episodes the task ended [N]; those cut off get their last state as the next one."""
        cut_off = [
            row for row in np.flatnonzero(finished).tolist() if infos[row]["TimeLimit.truncated"]
        ]
        if not cut_off:
            return finished
        last: Float32Array = np.stack([infos[row]["terminal_observation"] for row in cut_off])
        states = np.zeros(len(cut_off), np.int64)
        self.policy.state_numbers(last, states)
        self._rows.next_states[cut_off] = states
        terminated = finished.copy()
        terminated[cut_off] = False
        return terminated

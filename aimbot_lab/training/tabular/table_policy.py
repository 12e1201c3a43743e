"""A table of action values as a policy of stable-baselines3."""

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Float32Array, StateTable
from aimbot_lab.training.tabular.core.q_values import Floats32, Ints, write_best, write_states


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

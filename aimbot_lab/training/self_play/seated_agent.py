"""An agent in one seat of each of several matches."""

import torch as th

from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.training.agents.agent import Agent


class SeatedAgent:
    """An agent that samples by random numbers of its own; as in training, unless told otherwise."""

    def __init__(self, agent: Agent, seed: int, temperature: Temperature | None = None) -> None:
        self._agent, self._state = agent, None
        self._temperature = agent.temperature(temperature)
        self._random = th.Generator().manual_seed(seed).get_state()

    def act(self, observations: Float32Array, masks: BoolArray, starts: BoolArray) -> Float32Array:
        """World actions [B, A]."""
        with th.random.fork_rng(devices=[]):
            th.set_rng_state(self._random)
            actions, self._state = self._agent.choose(
                observations,
                state=self._state,
                starts=starts,
                branch_masks=masks,
                temperature=self._temperature,
            )
            self._random = th.get_rng_state()
        return actions

"""An agent in one seat of each of several matches."""

from dataclasses import dataclass

import torch as th

from aimbot_lab.evaluation.matches import MatchPlayer
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.training.agents.agent import Agent


class SeatedAgent:
    """An agent that samples by random numbers of its own; as in training, or at `temperature`."""

    def __init__(self, agent: Agent, seed: int, *, temperature: Temperature | None = None) -> None:
        self._agent, self._state, self._temperature = agent, None, temperature
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


@dataclass(frozen=True)
class AgentPlayer(MatchPlayer):
    """An agent as a player; at the temperature that is advised where none is given."""

    agent: Agent | None = None
    temperature: Temperature | None = None


def agent_player(
    name: str, agent: Agent, *, step: int, run: str, temperature: Temperature | None = None
) -> AgentPlayer:
    """`agent` as a player; at the temperature that is advised where none is given."""

    def sit(seed: int) -> SeatedAgent:
        return SeatedAgent(agent, seed, temperature=temperature)

    return AgentPlayer(name, sit, step, run, agent=agent, temperature=temperature)

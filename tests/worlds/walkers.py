"""A parallel environment of PettingZoo whose agents end early and come late."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.env import ParallelEnv
from pettingzoo.utils.wrappers import BaseParallelWrapper

from aimbot_lab.foundation.named_code import allow
from aimbot_lab.worlds.pettingzoo.settings import PettingZooSettings
from aimbot_lab.worlds.pettingzoo.world_type import PETTINGZOO

LAST = 12  # step in which all are cut off
COMES = 3  # step in which the last agent comes


class Walkers(ParallelEnv):
    """Walk along a line to the goal, and leave there; who comes last is not there from the start.

    An agent sees its place, the goal, and a number that is never 0.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "walkers"}

    def __init__(
        self,
        agents: int = 3,
        goal: float = 4.0,
        masks: str = "",
        strict: bool = False,
        pictures: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.possible_agents = [f"walker_{number}" for number in range(agents)]
        self.goal, self.masks, self.strict = goal, masks, strict
        self.pictures, self.render_mode = pictures, render_mode
        low, high = np.array([-30, -30, 1]), np.array([30, 30, 2])
        seen: Any = spaces.Box(low.astype(np.float32), high.astype(np.float32))
        if pictures:
            picture = spaces.Box(0, 255, (8, 9, 3), np.uint8)
            seen = spaces.Dict({"eye": picture, "word": spaces.Text(3), "numbers": seen})
        if masks == "observation":
            choices = spaces.Box(0, 1, (3,), np.int8)
            seen = spaces.Dict({"observation": seen, "action_mask": choices})
        self.seen = seen

    def observation_space(self, agent: str) -> Any:
        return self.seen

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3, start=-1)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None or not hasattr(self, "random"):
            self.random, _ = seeding.np_random(seed)
        self.agents = self.possible_agents[:-1]
        self.place = {agent: float(self.random.integers(3)) for agent in self.possible_agents}
        self.steps = 0
        return {agent: self.see(agent) for agent in self.agents}, self.infos(self.agents)

    def step(self, actions: dict[str, Any]) -> Any:
        assert set(actions) == set(self.agents)
        self.steps += 1
        for agent, move in actions.items():
            if self.strict and not self.allowed(agent)[move + 1]:
                raise ValueError(f"{agent} moves by {move} from {self.place[agent]}")
            self.place[agent] += move
        acted, over = self.agents, self.steps == LAST
        there = {agent: self.place[agent] >= self.goal for agent in acted}
        self.agents = [agent for agent in acted if not there[agent] and not over]
        if self.steps == COMES and not over:
            self.agents.append(self.possible_agents[-1])
        shown = {*acted, *self.agents}
        return (
            {agent: self.see(agent) for agent in shown},
            {agent: float(there[agent]) - 0.1 for agent in acted},
            there,
            {agent: over and not there[agent] for agent in acted},
            self.infos(shown),
        )

    def allowed(self, agent: str) -> np.ndarray:
        """Nobody walks left of 0, and from there only to the right."""
        place = self.place[agent]
        return np.array([place > 0, place > 0, True], np.int8)

    def infos(self, agents: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = {
            agent: {"is_success": self.place[agent] >= self.goal} for agent in agents
        }
        if self.masks == "info":
            for agent in agents:
                found[agent]["action_mask"] = self.allowed(agent)
        return found

    def see(self, agent: str) -> Any:
        seen: Any = np.array([self.place[agent], self.goal, 2], np.float32)
        if self.pictures:
            shade = int(self.place[agent]) % 256
            seen = {"eye": np.full((8, 9, 3), shade, np.uint8), "word": "a", "numbers": seen}
        if self.masks == "observation":
            seen = {"observation": seen, "action_mask": self.allowed(agent)}
        return seen

    def render(self) -> np.ndarray:
        picture = np.zeros((20, 60, 3), np.uint8)
        for row, agent in enumerate(self.possible_agents):
            picture[5 * row : 5 * row + 4, int(self.place[agent]) % 60] = 255
        return picture


class Nameless(Walkers):
    """Does not say who may take part."""

    def __init__(self) -> None:
        super().__init__()
        del self.possible_agents


class Unclosable(Walkers):
    """Has different spaces, and a close that wants the window that only a reset makes."""

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3 + (agent == self.possible_agents[1]))

    def close(self) -> None:
        self.window.close()  # type: ignore[attr-defined]


class Unequal(Walkers):
    """The last agent can do more than others."""

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(4 if agent == self.possible_agents[-1] else 3)


class Loose(Walkers):
    """Gives no infos after a step, and other types than its spaces say."""

    def step(self, actions: dict[str, Any]) -> Any:
        seen, rewards, there, over, _ = super().step(actions)
        return (
            {agent: one.astype(np.float64) for agent, one in seen.items()},
            {agent: np.array([one]) for agent, one in rewards.items()},
            {agent: np.bool_(one) for agent, one in there.items()},
            {agent: np.array(one) for agent, one in over.items()},
            {},
        )


def aec_env() -> Any:
    return parallel_to_aec(Walkers())


def nobody() -> Any:
    return Walkers(agents=0)


def wrapped() -> Any:
    return BaseParallelWrapper(Walkers())


def walkers(rows: int = 3, **given: Any) -> Any:
    """A world of them."""
    settings = PettingZooSettings(
        **{"id": "tests.worlds.walkers:Walkers", "num_envs": rows, **given}
    )
    allow(PETTINGZOO.code(settings))
    return PETTINGZOO.make(settings)

"""A world in full play: what every measurement is taken on."""

import time

from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.world import Scenario, seats_of, step_buffers
from aimbot_lab.foundation.world_type import WorldSettings, WorldType
from aimbot_lab.worlds.registry import type_of

SEED = 20_240_229
PREPARED_STEPS = 64  # random actions, played again and again
WARM_UP_STEPS = 10


class Play:
    """Rows of a world in the midst of random play, whose episodes end at all times."""

    def __init__(self, settings: WorldSettings, scenario: Scenario) -> None:
        self.kind, self.scenario = type_of(settings), scenario
        self.world = self.kind.make(settings)
        self.seats = seats_of(self.world)
        self.buffers = step_buffers(self.world)
        agent = RandomAgent(self.world.spec, SEED)
        self.actions = [agent(self.buffers.observations) for _ in range(PREPARED_STEPS)]
        self._next = 0
        self.kind.spread_episodes(self.world, scenario, seed=SEED, play=self.run)
        self.run(WARM_UP_STEPS)

    @classmethod
    def of(cls, kind: WorldType, scenario: Scenario, *, seats: int, threads: int = 1) -> "Play":
        """A world of `kind` with so many agents, as far as its rows divide them."""
        agents = kind.spec(kind.settings()).agents
        return cls(kind.settings(num_envs=max(1, seats // agents), threads=threads), scenario)

    def run(self, steps: int) -> int:
        """How many episodes ended in the next `steps` steps of random play."""
        step, buffers, ended = self.world.step, self.buffers, 0
        for index in range(self._next, self._next + steps):
            ended += len(step(self.actions[index % PREPARED_STEPS], buffers).cell)
        self._next = (self._next + steps) % PREPARED_STEPS
        return ended

    def time_step(self, seconds: float) -> float:
        """Seconds that one step of all rows takes, measured for about `seconds`."""
        steps = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds or steps == 0:
            chunk = max(1, min(steps, 1000))
            self.run(chunk)
            steps += chunk
        return elapsed / steps

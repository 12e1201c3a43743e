"""An arena in full play: what every measurement is taken on."""

import time
from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.settings import ArenaSettings

SEED = 20_240_229
PREPARED_STEPS = 64  # random actions, played again and again
WARM_UP_STEPS = 10


class Play:
    """Rows of an arena, spread over the floor and over the time of their episodes.

    Without that spread all episodes would end in the same step, and a short measurement would
    hold either no reset or all of them.
    """

    def __init__(
        self, settings: ArenaSettings, presets: Sequence[Preset], *, scenario: Scenario
    ) -> None:
        self.arena = Arena(settings, presets)
        self.buffers = new_step_buffers(settings.num_envs, len(self.arena.spec.observation_names))
        agent = RandomAgent(self.arena.spec, SEED)
        self.actions = [agent(self.buffers.observations) for _ in range(PREPARED_STEPS)]
        self._next = 0
        self._spread(scenario)

    def _spread(self, scenario: Scenario) -> None:
        """First episodes in Free, since those begin at random places; then staggered ones."""
        state, settings = self.arena.state, self.arena.settings
        decisions = round(settings.time_limit / settings.decision_seconds)
        self.arena.set_scenario(Scenario({"free": 1.0}))
        self.arena.reset(SEED, self.buffers.observations)
        self.arena.set_scenario(scenario)
        state.decisions[:] = decisions
        self.run(1)
        state.decisions[:] = np.random.default_rng(SEED).integers(decisions, size=len(state.yaw))
        self.run(WARM_UP_STEPS)

    def run(self, steps: int) -> int:
        """How many episodes ended in the next `steps` steps of random play."""
        step, buffers, ended = self.arena.step, self.buffers, 0
        for index in range(self._next, self._next + steps):
            ended += len(step(self.actions[index % PREPARED_STEPS], buffers).lines)
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

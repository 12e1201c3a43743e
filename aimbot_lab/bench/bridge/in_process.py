"""A world by the calls of ML-Agents, in this process, beside the world itself, by turns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from aimbot_lab.bench.timing.play import PREPARED_STEPS, SEED, WARM_UP_STEPS, Play
from aimbot_lab.bench.timing.turns import best_by_turns
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.worlds.registry import default_type


@dataclass(frozen=True)
class InProcess:
    """Steps of single agents a second, of the world that is meant where none is named."""

    agents: int
    world: float  # the world itself
    world_and_masks: float  # where its masks are asked for after each step as well
    environment: float  # `LabEnvironment`, which gives masks with every step

    @property
    def share(self) -> float:
        """What of the world's speed is left by the calls of ML-Agents."""
        return self.environment / self.world


class LabPlay:
    """`LabEnvironment` in the midst of random play."""

    def __init__(self, play: Play) -> None:
        self._env = LabEnvironment(play.world, play.scenario)
        self._env.reset()
        ((self._behavior, spec),) = self._env.behavior_specs.items()
        np.random.seed(SEED % 2**32)
        self._actions = [spec.action_spec.random_action(play.seats) for _ in range(PREPARED_STEPS)]
        self._next = 0
        play.kind.spread_episodes(play.world, play.scenario, seed=SEED, play=self.run)
        self.run(WARM_UP_STEPS)

    def run(self, steps: int) -> None:
        """Play so many steps: take what was observed, set actions, step."""
        env, behavior = self._env, self._behavior
        for index in range(self._next, self._next + steps):
            env.get_steps(behavior)
            env.set_actions(behavior, self._actions[index % PREPARED_STEPS])
            env.step()
        self._next = (self._next + steps) % PREPARED_STEPS


def measure_in_process(*, agents: int, repeats: int, steps: int) -> InProcess:
    """The best of `repeats` short measurements of each, of so many steps of all agents."""
    kind = default_type()
    scenario = Scenario({kind.default_target(): 1.0})
    plain, masked = (Play.of(kind, scenario, seats=agents) for _ in range(2))
    lab = LabPlay(Play.of(kind, scenario, seats=agents))
    runs: list[Callable[[int], object]] = [plain.run, _with_masks(masked), lab.run]
    seconds = best_by_turns([partial(run, steps) for run in runs], repeats)
    return InProcess(agents, *(agents * steps / best for best in seconds))


def _with_masks(play: Play) -> Callable[[int], None]:
    masks = np.ones((play.seats, sum(play.world.spec.branches)), np.bool_)

    def run(steps: int) -> None:
        for _ in range(steps):
            play.run(1)
            play.world.action_masks(masks)

    return run

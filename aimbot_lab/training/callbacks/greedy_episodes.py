"""Episodes that a learner plays without exploration, learning nothing, to prove a lesson."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from stable_baselines3.common.base_class import BaseAlgorithm

from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.evaluation.episodes import FIRST_SEED, CellEpisodes, play_scenario
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Scenario,
    close_world,
)
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.callbacks.periodic_evaluation import EvaluatedPlan
from aimbot_lab.worlds.registry import make_world

MAX_ROWS = 2048
THE_MIX = Cell("the lesson", 0)


class SeededPlan(EvaluatedPlan, Protocol):
    """What a training is made from, with its seed."""

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        ...


class PlayStoppedError(Exception):
    """The training is to stop, so that no episode is played to its end."""


def greedy_play(
    plan: SeededPlan, model: BaseAlgorithm, *, should_stop: Callable[[], bool]
) -> "GreedyEpisodes | None":
    """What plays for `model`; None where the algorithm's agents play as they learn."""
    if not algorithm_of(plan.train).ranks_actions:
        return None
    return GreedyEpisodes(plan, model, should_stop=should_stop)


class GreedyEpisodes:
    """Plays by the present policy of `model`, in a world of its own, on seeds of its own.

    Draws from no generator of the training, which goes on as if it had not played. `should_stop`
    is asked after every step.
    """

    def __init__(
        self, plan: SeededPlan, model: BaseAlgorithm, *, should_stop: Callable[[], bool]
    ) -> None:
        self._plan, self._model, self._should_stop = plan, model, should_stop
        self._world: BatchWorld | None = None  # made when it is needed

    def __call__(self, scenario: Scenario, episodes: int) -> Sequence[Outcome]:
        """At least so many episodes of `scenario`; all lost where one never ends, none on stops."""
        world = self._world_of(min(episodes, MAX_ROWS))
        outcomes: list[Outcome] = []
        while len(outcomes) < episodes:
            try:
                played = self._played(world, scenario, begun=len(outcomes))
            except RunFailedError:
                return [Outcome(won=False, cell=None, reward=-inf)] * episodes
            except PlayStoppedError:
                return []
            results = zip(played.won.tolist(), played.returns.tolist(), strict=True)
            outcomes.extend(Outcome(won, None, reward) for won, reward in results)
        return outcomes

    def _world_of(self, rows: int) -> BatchWorld:
        if self._world is None or self._world.num_envs != rows:
            self.close()
            self._world = make_world(self._plan.env, rows, one_thread=True)
        return self._world

    def close(self) -> None:
        """End the world that it played in, if any."""
        if self._world is not None:
            close_world(self._world)
        self._world = None

    def _played(self, world: BatchWorld, scenario: Scenario, *, begun: int) -> CellEpisodes:
        seed = derive_seed(self._plan.seed, "greedy", self._model.num_timesteps, begun)
        player = Agent(self._model.policy, world.spec, self._plan.train).player(world, seed=seed)

        def act(observations: Float32Array, starts: BoolArray) -> Float32Array:
            if self._should_stop():
                raise PlayStoppedError
            return player(observations, starts)

        return play_scenario(world, act, scenario, name=THE_MIX, seed=FIRST_SEED + seed)

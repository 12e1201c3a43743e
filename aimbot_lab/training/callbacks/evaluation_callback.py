"""The agent judged while it trains: the last lesson's cells, and proofs without exploration.

Both are played in worlds of their own, on seeds of their own: the training continues as if neither
were.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Protocol

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.curriculum.evidence import Outcome
from aimbot_lab.curriculum.settings import Lesson, lesson_cells
from aimbot_lab.evaluation.episodes import (
    FIRST_SEED,
    CellEpisodes,
    CellScore,
    Score,
    play,
    play_scenario,
    score_all,
    score_cell,
)
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell, Measure
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Scenario,
    close_world,
)
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.callbacks.report_callback import MetricSink
from aimbot_lab.training.settings import EvaluationSettings, TrainSettings
from aimbot_lab.worlds.registry import evaluated, make_world, rows_for

SEED = derive_seed(0, "periodic evaluation")  # of every run: their curves are of the same episodes


class EvaluatedPlan(Protocol):
    """What a training is made from, as far as its evaluation goes by it."""

    @property
    def evaluation(self) -> EvaluationSettings | None:
        """How often and how much; None: never."""
        ...

    @property
    def lessons(self) -> Sequence[Lesson]:
        """Of which the last is played."""
        ...

    @property
    def env(self) -> WorldSettings:
        """The world."""
        ...

    @property
    def train(self) -> TrainSettings:
        """The learner."""
        ...


def _further_world(env: WorldSettings, episodes: int) -> BatchWorld:
    """A world for `episodes` beside the training's.

    Raises RunFailedError, as there is a run already.
    """
    rows = rows_for(env, episodes)
    try:
        return make_world(env, rows, one_thread=True)
    except ConfigurationError as error:
        raise RunFailedError(
            f"evaluating in {rows} copies beside the training's: {error}"
        ) from error


class EvaluationCallback(BaseCallback):
    """Logs the agent's win rate before training, then where a rollout begins after `every` steps.

    And when `finish` is called. Without settings it does nothing. The agent plays as `evaluate` has
    it play where nothing is asked for, in a world of its own, and draws from no generator of the
    training, which goes on as if it were not.
    """

    def __init__(self, plan: EvaluatedPlan, sink: MetricSink) -> None:
        super().__init__()
        self._settings, self._lesson = plan.evaluation, plan.lessons[-1]
        self._env, self._train = plan.env, plan.train
        self._sink = sink
        self._world: BatchWorld | None = None  # made when it is needed
        self._last: int | None = None  # step of the last evaluation

    def state(self) -> dict[str, Any]:
        """Everything that the next evaluations depend on."""
        return {"last": self._last}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._last = state["last"]

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._settings is None:
            return
        every = self._settings.every
        if self._last is None or self.num_timesteps // every > self._last // every:
            self._evaluate(self._settings)

    def finish(self) -> None:
        """Evaluate the agent that the training ended with."""
        if self._settings is not None and self.num_timesteps != self._last:
            self._evaluate(self._settings)

    def close(self) -> None:
        """End the world that it played in, if any."""
        if self._world is not None:
            close_world(self._world)
        self._world = None

    def _evaluate(self, settings: EvaluationSettings) -> None:
        self._last = self.num_timesteps
        self._sink.log_metrics(self.num_timesteps, self._metrics(settings))

    def _metrics(self, settings: EvaluationSettings) -> dict[str, float]:
        if self._world is None:
            self._world = _further_world(evaluated(self._env), settings.episodes)
        cells = lesson_cells(self._lesson, self._world.spec.difficulties)
        agent = Agent(self.model.policy, self._world.spec, self._train)
        played = []
        for cell in cells:
            player = agent.player(self._world, seed=derive_seed(SEED, "player", *cell))
            played.append(
                play(
                    self._world,
                    player,
                    cell,
                    seed=SEED,
                    episodes=settings.episodes,
                    parameters=self._lesson.parameters,
                    max_steps=settings.max_steps,
                )
            )
        together = score_all(played)
        measured = _measure_metrics(together, self._world.spec.measures)
        if not self._world.spec.has_wins:
            return measured
        return {
            names.EVAL_WIN_RATE: together.win_rate,
            names.EVAL_WIN_RATE_LOWER: together.lower,
            names.EVAL_WIN_RATE_UPPER: together.upper,
            **measured,
            **dict(map(_cell_metric, map(score_cell, played))),
        }


def _measure_metrics(score: Score, measures: Sequence[Measure]) -> dict[str, float]:
    """What else the world measures and has tracked, of all cells together."""
    found = {one.evaluation: score.measures[one.name] for one in measures if one.evaluation}
    return {metric: value for metric, value in found.items() if value is not None}


def _cell_metric(score: CellScore) -> tuple[str, float]:
    cell = Cell(score.target, score.difficulty)
    return names.of_cell(names.EVAL_WIN_RATE, cell), score.win_rate


MAX_EPISODES = 2048  # that are played at once
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
    """What plays for `model`; None where agents play as they learn, and where candidates do."""
    algorithm = algorithm_of(plan.train)
    if algorithm.samples or algorithm.candidates:
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
        """At least `episodes` of `scenario`; all lost where one never ends, none on stops."""
        together = min(episodes, MAX_EPISODES)
        world = self._world_of(together)
        outcomes: list[Outcome] = []
        while len(outcomes) < episodes:
            try:
                played = self._played(world, scenario, together, begun=len(outcomes))
            except RunFailedError:
                return [Outcome(won=False, cell=None, reward=-inf)] * episodes
            except PlayStoppedError:
                return []
            results = zip(played.won.tolist(), played.returns.tolist(), strict=True)
            outcomes.extend(Outcome(won, None, reward) for won, reward in results)
        return outcomes

    def _world_of(self, episodes: int) -> BatchWorld:
        rows = rows_for(self._plan.env, episodes)
        if self._world is None or self._world.num_envs != rows:
            self.close()
            self._world = _further_world(self._plan.env, episodes)
        return self._world

    def close(self) -> None:
        """End the world that it played in, if any."""
        if self._world is not None:
            close_world(self._world)
        self._world = None

    def _played(
        self, world: BatchWorld, scenario: Scenario, episodes: int, *, begun: int
    ) -> CellEpisodes:
        seed = derive_seed(self._plan.seed, "greedy", self._model.num_timesteps, begun)
        player = Agent(self._model.policy, world.spec, self._plan.train).player(world, seed=seed)

        def act(observations: Float32Array, starts: BoolArray) -> Float32Array:
            if self._should_stop():
                raise PlayStoppedError
            return player(observations, starts)

        return play_scenario(
            world, act, scenario, name=THE_MIX, seed=FIRST_SEED + seed, episodes=episodes
        )

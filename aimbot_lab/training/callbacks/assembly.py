"""The callbacks of a training, in the order in which they have to be called."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.training.agents.agent_files import BestAgent
from aimbot_lab.training.algorithms.adjustments import (
    NoiseCallback,
    StatisticsCallback,
    adjustments,
)
from aimbot_lab.training.callbacks.agreement import Agreement
from aimbot_lab.training.callbacks.evaluation_callback import EvaluationCallback, greedy_play
from aimbot_lab.training.callbacks.lesson_callback import CheckpointCallback, LessonCallback
from aimbot_lab.training.callbacks.lesson_replays import KeptEpisodesCallback
from aimbot_lab.training.callbacks.own_callbacks import OwnCallbacks
from aimbot_lab.training.callbacks.report_callback import (
    BestAgentCallback,
    EpisodeTally,
    MetricSink,
    ReportCallback,
)
from aimbot_lab.training.run_hooks import Observer, RunLinks
from aimbot_lab.training.self_play.session import SelfPlay
from aimbot_lab.training.settings import TrainingPlan


def self_play_callbacks(
    self_play: SelfPlay | None,
    model: BaseAlgorithm,
    progress: CurriculumProgress,
    *,
    sink: MetricSink,
) -> list[BaseCallback]:
    """The callback of `self_play`, which begins with the untrained `model`; none without it."""
    if self_play is None:
        return []
    engine = getattr(model, "engine", None)
    weights = model.policy.state_dict()
    self_play.begin(weights, engine="torch" if engine is None else engine.name)
    return [SelfPlayCallback(self_play, progress, sink=sink)]


class SelfPlayCallback(BaseCallback):
    """Tells `self_play` where rollouts and lessons begin; ratings go to `sink`.

    Comes after the lessons, so that a lesson's matches meet the agent that it began with.
    """

    def __init__(
        self, self_play: SelfPlay, progress: CurriculumProgress, *, sink: MetricSink
    ) -> None:
        super().__init__()
        self._self_play, self._progress, self._sink = self_play, progress, sink
        self._lesson = progress.lesson

    def state(self) -> int:
        """The lesson that the last rollout was of."""
        return self._lesson

    def resume(self, state: int) -> None:
        """Go on from what `state()` gave."""
        self._lesson = state

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        weights, step = self.model.policy.state_dict(), self.num_timesteps
        lesson, self._lesson = self._lesson, self._progress.lesson
        metrics = self._self_play.begin_rollout(
            weights, step=step, lesson_begins=self._lesson != lesson
        )
        if metrics is not None:
            self._sink.log_metrics(step, metrics)


MAX_POINTS = 2000  # of a metric over a whole training; charts draw at most 2,500
KEPT: Mapping[type[BaseCallback], str] = MappingProxyType(
    {
        ReportCallback: "report",
        BestAgentCallback: "best_offers",
        EvaluationCallback: "evaluation",
        StatisticsCallback: "statistics",
        NoiseCallback: "noise",
        SelfPlayCallback: "lesson_played",
        OwnCallbacks: "own",
    }
)
"""Callbacks with a state, and its name in a checkpoint; older ones lack some of them."""


@dataclass(frozen=True)
class Learner:
    """What learns, and how far it has come."""

    plan: TrainingPlan
    env: WorldVecEnv
    model: BaseAlgorithm
    progress: CurriculumProgress
    best: BestAgent
    self_play: SelfPlay | None
    agreement: Agreement
    own: OwnCallbacks


@dataclass(frozen=True)
class Listeners:
    """Who is told of a training, and who may end it."""

    sink: MetricSink
    observer: Observer
    should_stop: Callable[[], bool]
    links: RunLinks


class TrainingCallbacks:
    """Those of `learner`; `keep` keeps a checkpoint, `mark` notes that a rollout begins."""

    def __init__(
        self,
        learner: Learner,
        listeners: Listeners,
        *,
        mark: Callable[[], None],
        keep: Callable[[], None],
    ) -> None:
        plan, sink = learner.plan, listeners.sink
        place = learner.env, learner.progress
        self._total_steps = plan.train.total_steps
        every_steps = self._total_steps // MAX_POINTS
        self._checkpoints = CheckpointCallback(mark, keep)
        self.report = ReportCallback(
            *place,
            sink=sink,
            observer=listeners.observer,
            tally=EpisodeTally.of(learner.env.world.spec),
            every_steps=every_steps,
            stopped=lambda: self.lessons.stopped,
        )
        self.lessons = self._lesson_callback(learner, listeners)
        self.best = BestAgentCallback(
            learner.progress,
            learner.best,
            every_steps=every_steps,
            stopped=lambda: self.lessons.stopped,
        )
        # Of every process: the others wait for one no longer than their patience lasts.
        self.evaluation = EvaluationCallback(plan, sink)
        self.all = CallbackList(self._in_order(learner, listeners))

    def _lesson_callback(self, learner: Learner, listeners: Listeners) -> LessonCallback:
        # What one process stops for, the others would wait for: they agree where rollouts begin.
        shared, should_stop = learner.agreement.is_shared, listeners.should_stop
        breaks_off = (lambda: False) if shared else should_stop
        self._greedy = greedy_play(learner.plan, learner.model, should_stop=breaks_off)
        own = learner.self_play
        rating = None if own is None else (lambda: own.running_rating)
        return LessonCallback(
            learner.env,
            learner.progress,
            observer=listeners.observer,
            should_stop=should_stop,
            links=listeners.links,
            greedy=self._greedy,
            agreement=learner.agreement,
            counted=(self.report.count,),
            checkpoints=self._checkpoints,
            rating=rating,
        )

    def _in_order(self, learner: Learner, listeners: Listeners) -> list[BaseCallback]:
        """Adjustments first: what is reported or kept where a rollout begins includes them."""
        own = self_play_callbacks(
            learner.self_play, learner.model, learner.progress, sink=listeners.sink
        )
        replays = listeners.links.replays
        if replays is not None and learner.plan.train.actors is None:
            lessons = learner.plan.lessons
            own.append(
                KeptEpisodesCallback(learner.env, learner.progress, lessons=lessons, sink=replays)
            )
        if learner.own.named:
            learner.own.join(self.lessons.stop, listeners.observer, listeners.sink)
            own.append(learner.own)
        first = adjustments(learner.plan.train, learner.model.policy)
        last = [self.report, self.evaluation, self.best, self._checkpoints]
        return [*first, self.lessons, *own, *last]

    @property
    def _kept(self) -> dict[str, Any]:
        """Those with a state, by its name in a checkpoint."""
        return {KEPT[type(one)]: one for one in self.all.callbacks if type(one) in KEPT}

    def close(self) -> None:
        """End the worlds in which the agent is judged while it trains."""
        with ExitStack() as stack:
            stack.callback(self.evaluation.close)
            if self._greedy is not None:
                stack.callback(self._greedy.close)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of them."""
        return {name: one.state() for name, one in self._kept.items()}

    def resume(self, state: Mapping[str, Any], *, step: int) -> None:
        """Go on at `step` from a checkpoint's `state`, whose total_steps may have been others."""
        for name, one in self._kept.items():
            if name in state:
                one.resume(state[name])
        if state["total_steps"] != self._total_steps:
            self.report.spread(self._total_steps - step)

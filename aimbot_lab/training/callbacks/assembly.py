"""The callbacks of a training, put together; replays that it keeps; what it shows while watched.

A watched training shows how it stands, and its newest agent. Both lie in a folder of the run and
are replaced as a whole. Nothing is written, and nothing worked out, unless a request to watch has
come within the last seconds. What is written takes MAX_SHARE of the processor's time at most,
however slow or large it is: after it the publication rests.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.files import swap_file
from aimbot_lab.foundation.shown_text import finite_numbers, speed
from aimbot_lab.foundation.world import Observations
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.replay.episode import (
    About,
    RecordedEpisode,
    RowRecorder,
    as_replay,
    replay_text,
    replays_of,
)
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import BestAgent, save_agent
from aimbot_lab.training.algorithms.models import (
    NoiseCallback,
    StatisticsCallback,
    adjustments,
)
from aimbot_lab.training.callbacks.evaluation_callback import EvaluationCallback, greedy_play
from aimbot_lab.training.callbacks.lesson_callback import (
    Agreement,
    CheckpointCallback,
    LessonCallback,
)
from aimbot_lab.training.callbacks.own_callbacks import OwnCallbacks
from aimbot_lab.training.callbacks.report_callback import (
    PLANNED_POINTS,
    BestAgentCallback,
    EpisodeTally,
    MetricSink,
    ReportCallback,
)
from aimbot_lab.training.run_hooks import Observer, RunLinks, TextSink
from aimbot_lab.training.self_play.session import SelfPlay
from aimbot_lab.training.settings import TrainingPlan, TrainSettings

FOLDER = "replays"
KINDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


class KeptEpisodesCallback(BaseCallback):
    """Gives `sink` replays of one environment when a lesson ends, or the training.

    Of each lesson the first episode and the last that was won, drawn and lost, as
    replays/lesson-01-first.json and so on. Until then it costs a copy of a row's actions a step.
    """

    def __init__(
        self,
        env: WorldVecEnv,
        progress: CurriculumProgress,
        *,
        lessons: Sequence[Lesson],
        sink: TextSink,
        train: TrainSettings,
    ) -> None:
        super().__init__()
        self._env, self._progress, self._sink, self._train = env, progress, sink, train
        self._lessons = lessons
        self._recorder: RowRecorder | None = None
        self._lesson = progress.lesson
        self._begun_in = progress.lesson  # the lesson in which the running episode began
        self._kept: dict[str, tuple[RecordedEpisode, int]] = {}  # with the step of its end
        self._sees_first = False

    def _on_training_start(self) -> None:
        world: Any = self._env.world
        # Of a lesson that is gone on with, the first episode was kept before.
        self._sees_first = self.num_timesteps == 0
        if world.spec.can("replay"):
            row = replays_of(world.settings).kept_row(world)
            self._recorder = RowRecorder(world, row, self._seen if self._sees_first else None)
            self._recorder.seen = self._seen  # a world that was restored has shown nothing yet
        self._lesson = self._begun_in = self._progress.lesson

    def _seen(self) -> Observations:
        return self._env.observations

    def _on_step(self) -> bool:
        if self._recorder is None or self._env.episodes is None:
            return True
        episode = self._recorder.add(self._env.world_actions, self._env.episodes)
        if episode is not None:
            if self._begun_in == self._lesson:
                self._keep(episode)
            self._begun_in = self._lesson  # of the next: a lesson ends between two rollouts
        return True

    def _on_rollout_start(self) -> None:
        if self._progress.lesson != self._lesson:
            self._hand_over()
            self._lesson, self._sees_first = self._progress.lesson, True

    def _on_training_end(self) -> None:
        self._hand_over()

    def _keep(self, episode: RecordedEpisode) -> None:
        if self._sees_first:
            self._kept["first"] = episode, self.num_timesteps
            self._sees_first = False
        self._kept[KINDS[episode.result.outcome]] = episode, self.num_timesteps

    def _hand_over(self) -> None:
        if not self._kept:
            return
        judge = Agent(self.model.policy, self._env.world.spec, self._train).mind
        for which, (episode, step) in self._kept.items():
            name = f"{FOLDER}/lesson-{self._lesson + 1:02}-{which}.json"
            about: About = {
                "lesson": self._lesson + 1,
                "lesson_name": self._lessons[self._lesson].name,
                "step": step,
                "judged_at_step": self.num_timesteps,  # its mind is that of now
                "player": "as in training",
            }
            try:
                self._sink.log_text(replay_text(as_replay(episode, about, judge)), name)
            except LabError:
                continue  # a picture that is missing must not end a training
        self._kept.clear()


FORMAT = 1
MAX_WATCH_SECONDS = 60.0  # that one request is good for
STATUS_SECONDS = 0.5  # between two states that are written
AGENT_SECONDS = 5.0  # between two agents
MAX_SHARE = 0.005  # of the processor's time that the whole training takes


class LivePublication:
    """Writes to the folder `live` of a run, where it is asked to.

    `clock` gives seconds, `processor` those that the training has taken of the processor. A disk
    that refuses ends nothing.
    """

    def __init__(
        self,
        live: LiveFolder,
        *,
        env: WorldSettings,
        train: TrainSettings,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._live, self._env, self._train = live, env, train
        self._clock, self._processor = clock, processor
        self._rests_until = -inf  # by `processor`
        self._watched_until = self._agent_wanted_until = -1.0
        self._status_due = self._agent_due = 0.0
        self._last = clock(), -1  # when, and at which step, a rollout began

    def watch(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Show the training for `seconds` from now; its `agent` as well where asked."""
        seconds = document.get("seconds")
        if not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_WATCH_SECONDS:
            return {"error": f"seconds: must lie between 0 and {MAX_WATCH_SECONDS:g}"}
        now = self._clock()
        self._watched_until = max(self._watched_until, now + seconds)
        if document.get("agent"):
            self._agent_wanted_until = max(self._agent_wanted_until, now + seconds)
        self._status_due = 0.0
        return {"watched_for": seconds}

    def publish(self, progress: CurriculumProgress, *, step: int, policy: Any) -> None:
        """Write what is due where a rollout begins at environment step `step`."""
        now = self._clock()
        if now > self._watched_until:
            self._last = now, step
            return
        begun = self._processor()
        if begun < self._rests_until:
            return
        self._publish_due(progress, step=step, policy=policy, now=now)
        ended = self._processor()
        self._rests_until = ended + (ended - begun) / MAX_SHARE

    def _publish_due(
        self, progress: CurriculumProgress, *, step: int, policy: Any, now: float
    ) -> None:
        if now >= self._status_due:
            self._write_status(progress, step, now=now)
            self._status_due, self._last = now + STATUS_SECONDS, (now, step)
        if policy is not None and self._agent_due <= now <= self._agent_wanted_until:
            self._write_agent(policy, {"step": step, "lesson": progress.lesson + 1})

    def show_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """Write the present agent; `about` it, or why the disk did not take it."""
        if not self._write_agent(policy, about):
            return {"error": "the disk did not take the agent"}
        return {**about}

    def _write_agent(self, policy: Any, about: Mapping[str, Any]) -> bool:
        """Whether the disk took the agent, which is not written again for a while."""
        try:
            save_agent(policy, self._live.agent, env=self._env, train=self._train, about={**about})
        except OSError:
            return False
        finally:
            self._agent_due = self._clock() + AGENT_SECONDS
        return True

    def _write_status(self, progress: CurriculumProgress, step: int, *, now: float) -> None:
        seconds, steps = now - self._last[0], step - self._last[1]
        known = self._last[1] >= 0 and seconds > 0
        document = {
            "format": FORMAT,
            "step": step,
            "total_steps": self._train.total_steps,
            "steps_per_second": speed(steps, seconds) if known else None,
            **status(progress),
        }
        with suppress(OSError):
            self._live.path.mkdir(exist_ok=True)
            swap_file(self._live.status, json.dumps(finite_numbers(document)).encode())


def status(progress: CurriculumProgress) -> dict[str, Any]:
    """Where a curriculum stands, as plain JSON values."""
    view = progress.view
    mix = progress.mix
    return {
        "lesson": view.lesson,
        "lessons": [asdict(report) for report in progress.lesson_reports],
        "finished": progress.finished,
        "episodes": view.episodes,
        "window": view.window,
        "win_rate": view.win_rate._asdict(),
        "has_wins": view.has_wins,
        "mean_return": view.mean_return,
        "threshold": view.threshold,
        "min_lesson_length": view.min_lesson_length,
        "log_evidence": view.log_evidence,
        "log_bound": view.log_bound,
        "measured": None if view.measured is None else asdict(view.measured),
        "cells": [asdict(cell) for cell in view.cells],
        "targets": mix.document(None),
        "difficulty": {target: mix.document(target) for target in mix.with_difficulties},
        "moved": mix.moved,
    }


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


class Callbacks(CallbackList):
    """All of a training; they share one dict of the library's loop, in which it is kept up."""

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Tell a user's own, which may have callbacks of their own."""
        for one in self.callbacks:
            if isinstance(one, OwnCallbacks):
                one.update_locals(locals_)


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


class TrainingCallbacks:
    """Those of `learner`; `keep` keeps a checkpoint, `mark` notes that a rollout begins.

    `sink`, `observer` and `links` are told of the training, which `should_stop` may end.
    """

    lessons: LessonCallback

    def __init__(
        self,
        learner: Learner,
        sink: MetricSink,
        observer: Observer,
        should_stop: Callable[[], bool],
        *,
        links: RunLinks,
        mark: Callable[[], None],
        keep: Callable[[], None],
    ) -> None:
        plan, model, own = learner.plan, learner.model, learner.self_play
        place = learner.env, learner.progress
        self._total_steps = plan.train.total_steps
        timing: Any = {
            "every_steps": self._total_steps // PLANNED_POINTS,
            "stopped": lambda: self.lessons.stopped,
        }
        checkpoints = CheckpointCallback(mark, keep, every=plan.train.checkpoint_every)
        tally = EpisodeTally.of(learner.env.world.spec)
        self.report = ReportCallback(*place, sink=sink, observer=observer, tally=tally, **timing)
        # What one process stops for, the others would wait for: they agree where rollouts begin.
        breaks_off = (lambda: False) if learner.agreement.is_shared else should_stop
        self._greedy = greedy_play(plan, model, should_stop=breaks_off)
        self.lessons = LessonCallback(
            *place,
            observer=observer,
            should_stop=should_stop,
            links=links,
            greedy=self._greedy,
            agreement=learner.agreement,
            counted=(self.report.count,),
            checkpoints=checkpoints,
            rating=None if own is None else (lambda: own.running_rating),
        )
        best = BestAgentCallback(learner.progress, learner.best, **timing)
        # Of every process: the others wait for one no longer than their patience lasts.
        self.evaluation = EvaluationCallback(plan, sink)
        between = self_play_callbacks(own, model, learner.progress, sink=sink)
        if links.replays is not None and plan.train.actors is None:
            between.append(
                KeptEpisodesCallback(
                    *place, lessons=plan.lessons, sink=links.replays, train=plan.train
                )
            )
        if learner.own.named:
            learner.own.join(self.lessons.stop, observer, sink)
            between.append(learner.own)
        # Adjustments first: what is reported or kept where a rollout begins includes them.
        first = adjustments(plan.train, model.policy)
        last = [self.report, self.evaluation, best, checkpoints]
        self.all = Callbacks([*first, self.lessons, *between, *last])

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

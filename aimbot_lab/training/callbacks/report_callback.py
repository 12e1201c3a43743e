"""After an update: metrics to the tracker, a snapshot to the observer, the best agent kept."""

import time
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Protocol

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.world import dropped_episodes, logged_errors, new_notices
from aimbot_lab.training.agents.best_agent import BestAgent
from aimbot_lab.training.callbacks.curriculum_metrics import curriculum_metrics, learner_metrics
from aimbot_lab.training.callbacks.episode_stats import EpisodeTally
from aimbot_lab.training.callbacks.lesson_changes import LessonChanges
from aimbot_lab.training.callbacks.taken_steps import TakenStep
from aimbot_lab.training.callbacks.win_tally import WinTally
from aimbot_lab.training.observer import Observer, TrainingSnapshot

MAX_POINTS = 2_400  # of a metric; charts draw at most 2,500
GLANCE_SECONDS = 1.0


class MetricSink(Protocol):
    """Where numbers go; a tracker is one."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        ...


class ReportCallback(BaseCallback):
    """After an update: metrics to `sink` and a snapshot to the observer.

    Both at most every `every_steps` environment steps, and at the end: some algorithms make an
    update after every step. Not at the end of a training that `stopped` early, which goes on from
    where its last rollout began. In between the observer has a glance now and then.
    """

    def __init__(
        self,
        env: WorldVecEnv,
        progress: CurriculumProgress,
        *,
        sink: MetricSink,
        observer: Observer,
        tally: EpisodeTally,
        every_steps: int,
        stopped: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._env, self._progress = env, progress
        self._sink, self._observer, self._tally = sink, observer, tally
        self._wins = WinTally()
        self._every_steps = every_steps
        self._stopped = stopped
        self._began = self._last_time = self._last_shown = time.monotonic()
        self._last_step = 0
        self._last_logged: int | None = None
        self._points = 0  # reports so far
        self._lessons = LessonChanges(progress)
        self._has_warned = False  # of losses that are no numbers

    @property
    def seconds(self) -> float:
        """Time since training began, without breaks."""
        return time.monotonic() - self._began

    def state(self) -> dict[str, Any]:
        """Everything that the next reports depend on."""
        return {
            "seconds": self.seconds,
            "seconds_since_report": time.monotonic() - self._last_time,
            "last_step": self._last_step,
            "last_logged": self._last_logged,
            "points": self._points,
            "every_steps": self._every_steps,
            "tally": self._tally.state(),
            "wins": self._wins.state(),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        now = time.monotonic()
        self._began = now - state["seconds"]
        self._last_time = now - state["seconds_since_report"]
        self._last_step, self._last_logged = state["last_step"], state["last_logged"]
        self._tally.resume(state["tally"])
        self._wins.resume(state["wins"])
        self._points = state["points"]
        self._every_steps = max(self._every_steps, state["every_steps"])

    def spread(self, steps: int) -> None:
        """Have the points that charts have room for suffice for `steps` more, and for more yet."""
        room = max((MAX_POINTS - self._points) // 2, 1)
        self._every_steps = max(self._every_steps, -(-steps // room))

    def count(self, taken: TakenStep) -> None:
        """Count a step that the curriculum has just counted."""
        self._wins.add(self._progress.shown)
        self._lessons.look(taken.step)
        self._tally.add(taken.episodes)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        # The algorithm has made its update by now, except before the first rollout.
        self._log(is_due=self.num_timesteps - self._last_step >= max(self._every_steps, 1))
        self._glance()
        self._lessons.begin_rollout()

    def _on_training_end(self) -> None:
        if not self._stopped():
            self._log(is_due=self.num_timesteps != self._last_logged)

    def _log(self, *, is_due: bool) -> None:
        """Tell at which steps lessons changed, and report where that `is_due`."""
        for step, metric in self._lessons.take(reported_at=self.num_timesteps if is_due else None):
            self._sink.log_metrics(step, metric)
        if is_due:
            self._report()

    def _glance(self) -> None:
        """Show the observer where the training stands, unless it has just seen that."""
        is_new = self.num_timesteps > self._last_step
        if is_new and time.monotonic() - self._last_shown >= GLANCE_SECONDS:
            self._observer.glance(self._snapshot())
            self._tell_news()

    def _snapshot(self) -> TrainingSnapshot:
        now = self._last_shown = time.monotonic()
        return TrainingSnapshot(
            step=self.num_timesteps,
            total_steps=self.locals.get("total_timesteps", self.num_timesteps),
            seconds=now - self._began,
            steps_per_second=(self.num_timesteps - self._last_step)
            / max(now - self._last_time, 1e-9),
            view=self._progress.view,
        )

    def _tell_news(self) -> None:
        for notice in new_notices(self._env.world):
            self._observer.notice(notice)

    def _report(self) -> None:
        snapshot = self._snapshot()
        self._last_step, self._last_time = snapshot.step, self._last_shown
        self._observer.progress(snapshot)
        self._tell_news()
        self._last_logged = self.num_timesteps
        self._points += 1
        learned = learner_metrics(self.logger)
        self._tell_lost(learned)
        metrics = {
            **curriculum_metrics(snapshot.view),
            **self._wins.take(),
            **self._tally.take(),
            **learned,
            names.STEPS_PER_SECOND: snapshot.steps_per_second,
            names.EPISODES_UNPARSED: float(sum(self._progress.unparsed.values())),
        }
        if (actors := getattr(self._env.world, "take_metrics", None)) is not None:
            metrics.update(actors())
        world = self._env.world
        counts = (
            (names.EPISODES_DROPPED, dropped_episodes(world)),
            (names.ERRORS_LOGGED, logged_errors(world)),
        )
        metrics.update({name: float(count) for name, count in counts if count is not None})
        self._sink.log_metrics(self.num_timesteps, metrics)

    def _tell_lost(self, learned: Mapping[str, float]) -> None:
        """Say once which losses are no numbers: nothing is learned by them."""
        lost = [name for name, value in learned.items() if "loss" in name and not isfinite(value)]
        if lost and not self._has_warned:
            self._has_warned = True
            self._observer.notice(
                f"{', '.join(lost)}: not finite at step {self.num_timesteps:,}, so that nothing "
                "sound is learned; lower env.rewards, train.reward_scale or train.learning_rate"
            )


class BestAgentCallback(BaseCallback):
    """Offers `best` the agent after an update, with its rank.

    At most every `every_steps` environment steps, and at the end unless the training `stopped`
    early.
    """

    def __init__(
        self,
        progress: CurriculumProgress,
        best: BestAgent,
        *,
        every_steps: int,
        stopped: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._progress = progress
        self._best = best
        self._every_steps = every_steps
        self._stopped = stopped
        self._last_step = 0

    def state(self) -> dict[str, Any]:
        """Everything that the next offers depend on."""
        return {"last_step": self._last_step}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._last_step = state["last_step"]

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._last_step >= self._every_steps:
            self._offer()

    def _on_training_end(self) -> None:
        if not self._stopped():
            self._offer()

    def _offer(self) -> None:
        self._last_step = self.num_timesteps
        view = self._progress.view
        rank = view.lesson + self._progress.finished, view.win_rate.lower
        if self.num_timesteps:
            weights = self.model.policy.state_dict()
            lesson = self._progress.lesson + 1
            self._best.consider(rank, weights, step=self.num_timesteps, lesson=lesson)

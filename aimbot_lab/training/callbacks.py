"""What happens beside learning: lessons, metrics, the best agent, stopping early."""

import time
from collections.abc import Callable
from typing import Protocol

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.faces.sb3 import WorldVecEnv
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.training.links import UNLINKED, RunLinks
from aimbot_lab.training.live_weights import LiveWeights
from aimbot_lab.training.metrics import curriculum_metrics, learner_metrics
from aimbot_lab.training.observer import Observer, TrainingSnapshot
from aimbot_lab.training.tally import EpisodeTally


class MetricSink(Protocol):
    """Where numbers go; a tracker is one."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep numbers measured at environment step `step`."""
        ...


class LessonCallback(BaseCallback):
    """Feeds finished episodes to the curriculum and sets the scenario that it wants.

    What the curriculum wants to be kept goes to the record of `links`; difficulty weights are
    changed as its requests ask.

    Ends the training where the last lesson's criterion passes, and where `should_stop` says
    so; `stopped` tells the second from the first. `should_stop` is asked after every step of the
    environments, so a stop waits for one update at most: stable-baselines3 asks nobody while it
    makes one, nor between an update and the next step.
    """

    def __init__(
        self,
        env: WorldVecEnv,
        progress: CurriculumProgress,
        *,
        observer: Observer,
        should_stop: Callable[[], bool],
        links: RunLinks = UNLINKED,
    ) -> None:
        super().__init__()
        self._env = env
        self._progress = progress
        self._observer = observer
        self._links = links
        self._weights = LiveWeights(progress, env.world)
        self._should_stop = should_stop
        self.stopped = False
        self._set_scenario()

    def _set_scenario(self) -> None:
        if self._progress.wants_scenario:
            self._progress.begin_scenario(self._env.world.set_scenario(self._progress.scenario))

    def _on_step(self) -> bool:
        falls = len(self._progress.falls)
        check = self._progress.add(self._env.episodes, step=self.num_timesteps)
        for fall in self._progress.falls[falls:]:
            self._observer.notice(fall.line)
        if check is not None and check.decision in ("promote", "finish"):
            report = self._progress.lesson_reports[check.lesson]
            self._observer.promotion(report, self.num_timesteps)
        if self._links.record is not None:
            for name, text, place in self._progress.record:
                self._links.record.grow(name, text, place=place)
        if self._progress.finished:
            return False
        self._set_scenario()
        if self._links.requests is not None:
            self._weights.answer(self._links.requests)
        self.stopped = self._should_stop()
        return not self.stopped


class ReportCallback(BaseCallback):
    """After an update: metrics to `sink` and a snapshot to the observer.

    Both at most every `every_steps` environment steps, and at the end: some algorithms make an
    update after every step.
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
    ) -> None:
        super().__init__()
        self._env, self._progress = env, progress
        self._sink, self._observer, self._tally = sink, observer, tally
        self._every_steps = every_steps
        self._began = self._last_time = time.monotonic()
        self._last_step = 0
        self._last_logged: int | None = None

    def _on_training_start(self) -> None:
        self._began = self._last_time = time.monotonic()

    def _on_step(self) -> bool:
        if self._env.episodes:
            self._tally.add(self._env.episodes)
        return True

    def _on_rollout_start(self) -> None:
        # The algorithm has made its update by now, except before the first rollout.
        if self.num_timesteps - self._last_step >= max(self._every_steps, 1):
            self._report()

    def _on_training_end(self) -> None:
        if self.num_timesteps != self._last_logged:
            self._report()

    def _report(self) -> None:
        now = time.monotonic()
        speed = (self.num_timesteps - self._last_step) / max(now - self._last_time, 1e-9)
        self._last_step, self._last_time = self.num_timesteps, now
        view = self._progress.view
        snapshot = TrainingSnapshot(
            step=self.num_timesteps,
            total_steps=self.locals.get("total_timesteps", self.num_timesteps),
            seconds=now - self._began,
            steps_per_second=speed,
            view=view,
        )
        self._observer.progress(snapshot)
        self._last_logged = self.num_timesteps
        metrics = {
            **curriculum_metrics(view),
            **self._tally.take(),
            **learner_metrics(self.logger),
            names.STEPS_PER_SECOND: speed,
            names.EPISODES_UNPARSED: float(sum(self._progress.unparsed.values())),
        }
        self._sink.log_metrics(self.num_timesteps, metrics)


class BestAgentCallback(BaseCallback):
    """Calls `keep` with a rank after an update that did better than all before it.

    Looks at most every `every_steps` environment steps, and at the end.
    Rank: the lesson's number, then the lower end of the win rate's interval, so that a lucky
    streak over few episodes does not count as better.
    """

    def __init__(
        self,
        progress: CurriculumProgress,
        keep: Callable[[tuple[int, float], int], None],
        *,
        every_steps: int,
    ) -> None:
        super().__init__()
        self._progress = progress
        self._keep = keep
        self._every_steps = every_steps
        self._last_step = 0
        self._best = (-1, 0.0)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._last_step >= self._every_steps:
            self._consider()

    def _on_training_end(self) -> None:
        self._consider()

    def _consider(self) -> None:
        self._last_step = self.num_timesteps
        view = self._progress.view
        rank = view.lesson + self._progress.finished, view.win_rate.lower
        if self.num_timesteps and rank > self._best:
            self._best = rank
            self._keep(rank, self.num_timesteps)

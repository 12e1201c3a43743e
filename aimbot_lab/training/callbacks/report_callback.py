"""After an update: metrics to the tracker, a snapshot to the observer, the best agent kept.

Metrics are of the episodes that ended since the last report, of the lesson as the curriculum counts
it, and of the learner.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import Any, Protocol

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.evidence import ALL_CELLS, Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.reports import CurriculumView
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import MIN_EPISODES, Cell, EpisodeBatch, Measure, wilson
from aimbot_lab.foundation.shown_text import speed
from aimbot_lab.foundation.world import WorldSpec, dropped_episodes, logged_errors, new_notices
from aimbot_lab.tracking.tracker import is_key
from aimbot_lab.training.agents.agent_files import BestAgent
from aimbot_lab.training.checkpoint import recorded_numbers
from aimbot_lab.training.run_hooks import Observer, TrainingSnapshot


class EpisodeTally:
    """Sums of length, return, reward terms and what a world measures over episodes, and draws.

    They are taken and emptied together. Draws count where the world `has_draws`, or once there
    was one.
    These describe the training, in the order in which episodes end; win rates are the
    curriculum's, in the order in which they began.
    """

    def __init__(
        self,
        reward_terms: Sequence[str],
        columns: Sequence[str],
        measures: Sequence[Measure] = (),
        *,
        has_draws: bool = False,
    ) -> None:
        self._names = tuple(reward_terms)
        self._has_draws = has_draws
        own = measures or [
            Measure(name, name, training=names.episode_column(name)) for name in columns
        ]
        self._measures = tuple(one for one in own if one.training)
        self._clear()

    @classmethod
    def of(cls, spec: WorldSpec) -> "EpisodeTally":
        """For episodes of a world with `spec`."""
        return cls(spec.reward_terms, spec.episode_columns, spec.measures, has_draws=spec.has_draws)

    def _clear(self) -> None:
        self._episodes = 0
        self._decisions = 0
        self._terms = np.zeros(len(self._names))
        self._sums = {one.training: 0.0 for one in self._measures}
        self._counts = dict.fromkeys(self._sums, 0)
        self._cells: Counter[Cell | None] = Counter()
        self._drawn: Counter[Cell | None] = Counter()

    def add(self, batch: EpisodeBatch) -> None:
        """Count the episodes of `batch`."""
        if batch:
            self._episodes += len(batch.cell)
            self._decisions += int(batch.length.sum())
            self._terms += batch.terms.sum(axis=0)
            for one in self._measures:
                values = one.values(batch.columns)
                self._sums[one.training] += float(values.sum())
                self._counts[one.training] += len(values)
            self._cells.update(batch.cell)
            drawn = np.flatnonzero(batch.drawn).tolist()
            self._drawn.update(batch.cell[place] for place in drawn)
            self._has_draws |= bool(drawn)

    def take(self) -> dict[str, float]:
        """Metrics of the episodes counted since the last call; empty without any."""
        if not self._episodes:
            return {}
        terms = self._terms / self._episodes
        metrics = {
            names.EPISODE_LENGTH: self._decisions / self._episodes,
            names.EPISODE_RETURN: float(terms.sum()),
            names.EPISODES_ENDED: float(self._episodes),
        }
        for name, total in self._sums.items():
            if self._counts[name]:
                metrics[name] = total / self._counts[name]
        pairs = zip(self._names, terms, strict=True)
        metrics.update({names.reward_term(name): float(value) for name, value in pairs})
        metrics.update(self._draw_rates() if self._has_draws else {})
        self._clear()
        return metrics

    def _draw_rates(self) -> dict[str, float]:
        """Shares of drawn episodes, of all cells and of each."""
        cells = {cell: count for cell, count in self._cells.items() if cell is not None}
        return {
            names.DRAW_RATE: self._drawn.total() / self._episodes,
            **{
                names.of_cell(names.DRAW_RATE, cell): self._drawn[cell] / count
                for cell, count in cells.items()
            },
        }

    def state(self) -> dict[str, Any]:
        """Everything counted since the last `take`."""
        return {
            "episodes": self._episodes,
            "decisions": self._decisions,
            "terms": self._terms.copy(),
            "columns": dict(self._sums),
            "counts": dict(self._counts),
            "has_draws": self._has_draws,
            "cells": [[cell, count, self._drawn[cell]] for cell, count in self._cells.items()],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self._episodes, self._decisions = state["episodes"], state["decisions"]
        self._terms = state["terms"]
        self._sums = dict(state["columns"])
        self._has_draws |= state.get("has_draws", False)
        for cell, count, drawn in state.get("cells", ()):
            known = None if cell is None else Cell(*cell)
            self._cells[known], self._drawn[known] = count, drawn
        if "counts" in state:
            self._counts = dict(state["counts"])
            return
        # By an older version, which summed the columns of all episodes under their own names.
        self._sums = {names.episode_column(name): total for name, total in self._sums.items()}
        self._counts = dict.fromkeys(self._sums, self._episodes)


class WinTally:
    """Episodes of all cells together and of each, in the order in which they began.

    Each is taken and emptied by itself, once it has as many as make a rate.
    """

    def __init__(self) -> None:
        self._counts: dict[Cell, list[int]] = {}  # episodes and wins

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count episodes."""
        for outcome in outcomes:
            for cell in (ALL_CELLS,) if outcome.cell is None else (ALL_CELLS, outcome.cell):
                count = self._counts.setdefault(cell, [0, 0])
                count[0] += 1
                count[1] += outcome.won

    def take(self) -> dict[str, float]:
        """Metrics of what has `MIN_EPISODES` or more, which is forgotten; what has less is kept.

        The bounds are Wilson's at 95 % of these episodes alone: a block of a curve, to be looked
        at among its neighbours.
        """
        metrics: dict[str, float] = {}
        ripe = [cell for cell, count in self._counts.items() if count[0] >= MIN_EPISODES]
        for cell in ripe:
            episodes, wins = self._counts.pop(cell)
            if cell == ALL_CELLS:
                _, lower, upper = wilson(wins, episodes)
                metrics[names.LEARNING_WIN_RATE_LOWER] = lower
                metrics[names.LEARNING_WIN_RATE_UPPER] = upper
            metrics[names.of_cell(names.LEARNING_WIN_RATE, cell)] = wins / episodes
        return metrics

    def state(self) -> list[list[Any]]:
        """Everything counted since it was taken."""
        return [[*cell, *count] for cell, count in self._counts.items()]

    def resume(self, state: Iterable[Iterable[Any]]) -> None:
        """Go on from what `state()` gave."""
        self._counts = {Cell(target, level): count for target, level, *count in state}


LEARNER_PREFIX = "train/"


def curriculum_metrics(view: CurriculumView) -> dict[str, float]:
    """Win rates, lesson and evidence as the curriculum counts them."""
    metrics = {
        names.LESSON_NUMBER: view.lesson + 1.0,
        names.LESSON_EPISODES: float(view.episodes),
    }
    if view.win_rate.win_rate is not None and view.window >= MIN_EPISODES:
        metrics[names.LESSON_WIN_RATE] = view.win_rate.win_rate
        metrics[names.LESSON_WIN_RATE_LOWER] = view.win_rate.lower
        metrics[names.LESSON_WIN_RATE_UPPER] = view.win_rate.upper
    if view.threshold is not None:
        metrics[names.LESSON_THRESHOLD] = view.threshold
    if view.log_evidence is not None:
        metrics[names.LESSON_LOG_EVIDENCE] = view.log_evidence
    if view.measured is not None and view.measured.value is not None:
        metrics[names.LESSON_MEASURE] = view.measured.value
        metrics[names.LESSON_THRESHOLD] = view.measured.threshold
    for (target, difficulty), share in (view.shares or {}).items():
        metrics[names.cell_share(target, difficulty)] = share
    return metrics


def learner_metrics(logger: Logger) -> dict[str, float]:
    """What the algorithm recorded in its last update (losses, entropy, divergence, ...)."""
    found = recorded_numbers(logger.name_to_value)
    return {k: one for k, one in found.items() if k.startswith(LEARNER_PREFIX) and is_key(k)}


class LessonChanges:
    """The lessons of `progress` that began since the last `take`, by environment step.

    At such a step the lesson before was passed, as `LessonReport.ended_at_step` says, or an earlier
    one began again; reports come only after updates.
    """

    def __init__(self, progress: CurriculumProgress) -> None:
        self._progress = progress
        self._lesson = progress.lesson
        self._changes: dict[int, int] = {}

    def begin_rollout(self) -> None:
        """Take the present lesson as known: a training may have gone on from another state."""
        self._lesson = self._progress.lesson

    def look(self, step: int) -> None:
        """Note whether the lesson changed at `step`."""
        if self._progress.lesson != self._lesson:
            self._lesson = self._progress.lesson
            self._changes[step] = self._lesson

    def take(self, *, reported_at: int | None) -> list[tuple[int, dict[str, float]]]:
        """Steps and the metric at each, less the step that a report has as well."""
        taken = [
            (step, {names.LESSON_NUMBER: lesson + 1.0})
            for step, lesson in self._changes.items()
            if step != reported_at
        ]
        self._changes.clear()
        return taken


MAX_POINTS = 2_400  # of a metric; charts draw at most 2,500
PLANNED_POINTS = 2_000  # of a training; the others are for steps that it is given later
GLANCE_SECONDS = 1.0


class MetricSink(Protocol):
    """Where numbers go; a tracker is one."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep numbers measured at environment step `step`; each name at most once for a step."""
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
        self._has_warned = False  # of non-finite losses

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

    def count(self, episodes: EpisodeBatch) -> None:
        """Count episodes of a step that the curriculum has just counted."""
        if self._env.world.spec.has_wins:
            self._wins.add(self._progress.shown)
        self._lessons.look(episodes.step)
        self._tally.add(episodes)

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
            snapshot = self._snapshot()
            self._last_step, self._last_time = snapshot.step, self._last_shown
            self._observer.progress(snapshot)
            self._tell_news()
            self._report(snapshot)

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
            steps_per_second=speed(self.num_timesteps - self._last_step, now - self._last_time),
            view=self._progress.view,
        )

    def _tell_news(self) -> None:
        for notice in new_notices(self._env.world):
            self._observer.notice(notice)

    def _report(self, snapshot: TrainingSnapshot) -> None:
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
        """Warn once about non-finite losses: nothing sound is learned by them."""
        lost = [name for name, value in learned.items() if "loss" in name and not isfinite(value)]
        if lost and not self._has_warned:
            self._has_warned = True
            self._observer.notice(
                f"{', '.join(lost)}: not finite at step {self.num_timesteps:,}, so nothing "
                "useful is learned; lower env.rewards, train.reward_scale or train.learning_rate"
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
        worth = view.win_rate.lower if view.has_wins else view.mean_return
        rank = view.lesson + self._progress.finished, -inf if worth is None else worth
        if self.num_timesteps:
            weights = self.model.policy.state_dict()
            lesson = self._progress.lesson + 1
            self._best.consider(rank, weights, step=self.num_timesteps, lesson=lesson)

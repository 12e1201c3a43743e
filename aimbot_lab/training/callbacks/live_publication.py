"""What a training shows of itself while it is watched: how it stands, and its newest agent.

Both lie in a folder of the run and are replaced as a whole. Nothing is written, and nothing worked
out, unless a request to watch has come within the last seconds. What is written takes MAX_SHARE of
the processor's time at most, however slow or large it is: after it the publication rests.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from math import inf, isfinite
from typing import Any

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation.shown_text import speed
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.tracking.durable import swap_file
from aimbot_lab.training.agents.agent_files import DISK_ERRORS, save_agent
from aimbot_lab.training.settings import TrainSettings

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
        except DISK_ERRORS:
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
            swap_file(self._live.status, json.dumps(_finite(document)).encode())


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


def _finite(value: Any) -> Any:
    """`value` with None for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value

"""What being watched costs a training: one training, watched for a while by turns.

Watched, it shows its state and its newest agent as for the parts Training and Watch of the panel.
Seconds are those of the processor, so that other programs count little, the panel's own among them.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder
from aimbot_lab.training.callbacks.live_publication import LivePublication
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

RESAMPLES = 2000
WARM_UP = 2  # windows that are not counted
N_STEPS = 64
STEPS = 10**12  # that no bench spends


@dataclass(frozen=True)
class WatchCost:
    """Seconds of the processor for a million steps, unwatched and watched."""

    windows: int  # of each kind
    seconds_without: float  # median
    seconds_with: float  # median
    difference: float  # share by which the one is more than the other, median over the pairs
    lower: float  # interval at 95 %, by resampling
    upper: float


@dataclass
class _ByTurns:
    """Requests of a panel that is there in every other window of so many seconds."""

    channel: ControlChannel
    seconds: float
    steps_a_call: int
    windows: list[float] = field(default_factory=list)  # seconds of the processor for a step
    _began: tuple[float, float] = (0.0, 0.0)  # on the clock, and of the processor
    _calls: int = 0

    def requests(self) -> Sequence[tuple[str, Any]]:
        """Called after every step of the environments."""
        found = self.channel.requests()
        now, processor = time.monotonic(), time.process_time()
        if now - self._began[0] >= self.seconds:
            if self._calls:
                taken = processor - self._began[1]
                self.windows.append(taken / (self._calls * self.steps_a_call))
            self._began, self._calls = (now, processor), 0
            if len(self.windows) % 2:
                self.channel.send({"kind": "watch", "seconds": self.seconds, "agent": True})
        self._calls += 1
        return found

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        """Answer, and read the answer, as a panel does."""
        self.channel.answer(key, document)
        self.channel.wait(key, 0.0, still_open=lambda: True)

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        """Nothing is changed."""

    def changes(self) -> Sequence[tuple[int, Any]]:
        """None."""
        return ()


def measure_watch_cost(windows: int, *, seconds: float = 6.0, num_envs: int = 512) -> WatchCost:
    """The cost over `windows` of each kind of a training on Goto, each of so many seconds."""
    plan = TrainingPlan(
        seed=1,
        env=settings_with(num_envs=num_envs),
        lessons=(Lesson(name="all", targets={default_type().default_target(): 1.0}),),
        train=TrainSettings(
            algo="hybrid_ppo",
            total_steps=STEPS,
            n_steps=N_STEPS,
            batch_size=num_envs * N_STEPS // 4,
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        by_turns = _ByTurns(ControlChannel(Path(folder)), seconds, num_envs)
        live = LivePublication(LiveFolder.of(Path(folder)), env=plan.env, train=plan.train)
        wanted = WARM_UP + 2 * windows
        Training(plan).learn(
            _NoSink(),
            SilentObserver(),
            lambda: len(by_turns.windows) >= wanted,
            links=RunLinks(requests=by_turns, live=live),
        )
    return watch_cost(by_turns.windows[WARM_UP:wanted])


def watch_cost(seconds: Sequence[float]) -> WatchCost:
    """The cost from seconds of the processor a step, unwatched and watched by turns."""
    pairs = np.array(seconds[: len(seconds) // 2 * 2]).reshape(-1, 2)
    ratios = pairs[:, 1] / pairs[:, 0] - 1
    random = np.random.default_rng(1)
    drawn = np.median(ratios[random.integers(0, len(ratios), (RESAMPLES, len(ratios)))], axis=1)
    lower, upper = np.quantile(drawn, (0.025, 0.975)).tolist()
    without, with_them = (1e6 * median(pairs[:, column].tolist()) for column in (0, 1))
    difference = float(np.median(ratios))
    return WatchCost(len(pairs), without, with_them, difference, lower, upper)


class _NoSink:
    """Keeps no metrics."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""

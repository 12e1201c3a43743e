"""What being watched costs a training: the same training watched and alone, in pairs.

Both of a pair have one seed and do the same work to the bit, each in a run folder of its own on the
same disk; which of them comes first changes from pair to pair. Watched, a training is asked by a
process of its own for what the parts Training and Watch of the panel ask for. Seconds are counted
twice: of the training's process alone, in which other programs count little, and on the clock.
"""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import NamedTuple

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.statistics.intervals import student_quantile
from aimbot_lab.tracking.runs.control_channel import LOOK_SECONDS, ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder
from aimbot_lab.training.callbacks.live_publication import LivePublication
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

N_STEPS = 64
ROLLOUTS = 60  # of a training: about ten seconds, in which three agents are shown
CONFIDENCE = 0.95


class Taken(NamedTuple):
    """What a training took for a million steps."""

    processor: float  # s of its process
    clock: float  # s
    state_sha256: str


class Pair(NamedTuple):
    """The same training twice."""

    alone: Taken
    watched: Taken


class Ratio(NamedTuple):
    """Watched over alone, less 1: the geometric mean over the pairs, with its 95 % interval."""

    difference: float
    lower: float  # NaN of a single pair
    upper: float


@dataclass(frozen=True)
class WatchCost:
    """What being watched costs."""

    pairs: int
    seconds_alone: float  # of the processor for a million steps, median
    seconds_watched: float
    processor: Ratio
    clock: Ratio


def measure_watch_cost(
    pairs: int, *, rollouts: int = ROLLOUTS, num_envs: int = 512
) -> Iterator[Pair]:
    """So many pairs of a training on Goto, each as it ends; one before them is not counted.

    Raises LabError where a training learns something else because it is watched.
    """
    plan = TrainingPlan(
        seed=1,
        env=settings_with(num_envs=num_envs),
        lessons=(Lesson(name="all", targets={default_type().default_target(): 1.0}),),
        train=TrainSettings(
            algo="hybrid_ppo",
            total_steps=rollouts * N_STEPS * num_envs,
            n_steps=N_STEPS,
            batch_size=num_envs * N_STEPS // 4,
        ),
    )
    for number in range(-1, pairs):
        watched_first = number % 2 == 1
        first, second = _taken(plan, watched_first), _taken(plan, not watched_first)
        if first.state_sha256 != second.state_sha256:
            raise LabError("a training that was watched learned something else than one alone")
        if number >= 0:
            yield Pair(second, first) if watched_first else Pair(first, second)


def watch_cost(pairs: Sequence[Pair]) -> WatchCost:
    """What `pairs`, of which there is one at least, say of the cost."""
    return WatchCost(
        pairs=len(pairs),
        seconds_alone=median(pair.alone.processor for pair in pairs),
        seconds_watched=median(pair.watched.processor for pair in pairs),
        processor=_ratio([pair.watched.processor / pair.alone.processor for pair in pairs]),
        clock=_ratio([pair.watched.clock / pair.alone.clock for pair in pairs]),
    )


def _ratio(ratios: Sequence[float]) -> Ratio:
    """Their geometric mean less 1, by Student's t of the logarithms."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = fmean(logs)
    if len(logs) < 2:
        return Ratio(math.expm1(mean), math.nan, math.nan)
    width = student_quantile(0.5 + CONFIDENCE / 2, len(logs) - 1)
    half = width * stdev(logs, mean) / math.sqrt(len(logs))
    return Ratio(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half))


def _taken(plan: TrainingPlan, watched: bool) -> Taken:
    training = Training(plan)
    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as name:
        folder = Path(name)
        links = RunLinks(
            requests=ControlChannel(folder, look_seconds=LOOK_SECONDS),
            live=LivePublication(LiveFolder.of(folder), env=plan.env, train=plan.train),
        )
        with _watcher(folder, watched):
            processor, clock = time.process_time(), time.perf_counter()
            ended = training.learn(_NoSink(), SilentObserver(), lambda: False, links=links)
            processor, clock = time.process_time() - processor, time.perf_counter() - clock
        if LiveFolder.of(folder).status.exists() is not watched:
            raise LabError("a training showed itself to nobody, or not to who watched it")
    millions = ended.steps / 1e6
    return Taken(processor / millions, clock / millions, ended.state_sha256)


@contextmanager
def _watcher(folder: Path, watched: bool) -> Iterator[None]:
    """Somebody who watches, in a process of their own."""
    if not watched:
        yield
        return
    module = "aimbot_lab.bench.panel.watcher"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        if not process.stdout.readline():
            raise LabError("the process that watches did not begin")
        try:
            yield
        finally:
            process.stdin.close()


class _NoSink:
    """Keeps no metrics."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""

"""What being watched costs a training: stretches of one training, watched and alone, by turns.

Alone, watched, watched, alone and so on: what drifts while the training learns, or the machine
warms up, falls out of the pairs. Watched, the training is asked by a process of its own for what
the parts Training and Watch of the panel ask for. Seconds are counted three times: of the
training's process, in which other programs count little; on the clock; and within the code that
answers and shows, which says how much of the first difference the training does itself.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from aimbot_lab.bench.panel.turns import Meter, MeteredRequests, Stretch, Turns
from aimbot_lab.bench.panel.watcher import watcher_process
from aimbot_lab.bench.timing.ratios import mean_ratio
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.runs.control_channel import LOOK_SECONDS, ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder
from aimbot_lab.training.callbacks.live_publication import LivePublication
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

N_STEPS = 64
STRETCH_SECONDS = 5.0  # in which a training shows one agent and up to ten states
STEPS = 10**12  # never reached


class Pair(NamedTuple):
    """Two stretches of a training, one after the other."""

    alone: Stretch
    watched: Stretch


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
    own: float  # part of the processor's time that answering and showing take, watched


def measure_watch_cost(
    pairs: int,
    *,
    ended: Callable[[Pair], object],
    seconds: float = STRETCH_SECONDS,
    num_envs: int = 512,
) -> Sequence[Pair]:
    """So many pairs of stretches of a training on Goto; `ended` gets each.

    Raises LabError where the training showed itself to nobody.
    """
    found: list[Stretch] = []
    measured: list[Pair] = []

    def take(stretch: Stretch) -> None:
        found.append(stretch)
        if len(found) % 2 == 0:
            measured.append(Pair(*sorted(found[-2:])))
            ended(measured[-1])

    with tempfile.TemporaryDirectory(prefix="aimbot-lab-bench-") as name:
        folder = Path(name)
        training, meter = Training(_plan(num_envs)), Meter()
        channel = ControlChannel(folder, look_seconds=LOOK_SECONDS)
        with watcher_process(folder) as watcher:
            turns = Turns(
                lambda: _publication(folder, training.plan),
                turn=watcher.turn,
                ended=take,
                meter=meter,
                seconds=seconds,
            )
            links = RunLinks(requests=MeteredRequests(channel, meter), live=turns)
            training.learn(_NoSink(), SilentObserver(), lambda: len(measured) >= pairs, links=links)
        if not LiveFolder.of(folder).status.exists():
            raise LabError("a training showed itself to nobody")
    return measured[:pairs]


def watch_cost(pairs: Sequence[Pair]) -> WatchCost:
    """What `pairs`, of which there is one at least, say of the cost."""
    watched = [pair.watched for pair in pairs]
    return WatchCost(
        pairs=len(pairs),
        seconds_alone=median(pair.alone.processor for pair in pairs),
        seconds_watched=median(one.processor for one in watched),
        processor=_ratio([pair.watched.processor / pair.alone.processor for pair in pairs]),
        clock=_ratio([pair.watched.clock / pair.alone.clock for pair in pairs]),
        own=fmean(one.own for one in watched) / fmean(one.processor for one in watched),
    )


def _ratio(ratios: Sequence[float]) -> Ratio:
    """Their geometric mean less 1."""
    return Ratio(*(one - 1.0 for one in mean_ratio(ratios)))


def _plan(num_envs: int) -> TrainingPlan:
    return TrainingPlan(
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


def _publication(folder: Path, plan: TrainingPlan) -> LivePublication:
    return LivePublication(LiveFolder.of(folder), env=plan.env, train=plan.train)


class _NoSink:
    """Keeps no metrics."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""

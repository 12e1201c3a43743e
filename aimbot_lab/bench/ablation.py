"""What each switch of hybrid_ppo brings by itself: one small curriculum, with it and without.

Seconds are those of the processor, so that other programs on the machine count little.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import Any

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with

SWITCHES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "bins": {},
        "hybrid aim": {"aim": "hybrid"},
        "masks": {"masks": True},
        "per branch": {"objective": "per_branch"},
        "dual clip": {"dual_clip": 3.0},
        "all of these": {
            "aim": "hybrid",
            "masks": True,
            "objective": "per_branch",
            "dual_clip": 3.0,
        },
    }
)
"""What is switched on in each variant; the first is plain PPO, which the others stand against."""


@dataclass(frozen=True)
class AblationPlan:
    """The task that every variant learns, each from the same seeds."""

    target: str = field(default_factory=lambda: default_type().hardest_target())
    threshold: float = 0.7  # win rate over all difficulties that a training must prove
    most_steps: int = 4_000_000  # after which it has failed
    seeds: int = 5
    num_envs: int = 512
    n_steps: int = 64

    def training(self, switches: Mapping[str, Any], seed: int) -> TrainingPlan:
        """The training of one variant; the settings are those of the shipped curricula.

        But for the entropy bonus, which is the default: theirs is for bins, and it would widen a
        Gaussian without end.
        """
        criteria = CompletionCriteria(threshold=self.threshold, min_lesson_length=500)
        train = TrainSettings(
            algo="hybrid_ppo",
            total_steps=self.most_steps,
            n_steps=self.n_steps,
            batch_size=self.num_envs * self.n_steps // 8,
            learning_rate=1e-3,
            network=NetworkSettings(layers=(64, 64), activation="relu"),
            **switches,
        )
        lesson = Lesson(name=self.target, targets={self.target: 1.0}, completion_criteria=criteria)
        return TrainingPlan(seed, settings_with(num_envs=self.num_envs), (lesson,), train)


@dataclass(frozen=True)
class Attempt:
    """One training."""

    variant: str
    seed: int
    reached: bool
    steps: int  # environment steps until the threshold was passed, or all there were
    seconds: float  # of the processor


@dataclass(frozen=True)
class Spread:
    """Of several attempts; None where one that never reached the threshold stands there."""

    median: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class Summary:
    """All attempts of one variant."""

    variant: str
    trained: int
    reached: int
    steps: Spread
    seconds: Spread


class Nowhere:
    """Takes metrics and keeps none."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Let them go."""


def attempts(plan: AblationPlan, say: Callable[[str], None]) -> Iterator[Attempt]:
    """All trainings of `plan`, seed by seed; `say` is called for each before it is handed out."""
    for seed in range(1, plan.seeds + 1):
        for variant, switches in SWITCHES.items():
            training = Training(plan.training(switches, seed))
            began = time.process_time()
            ended = training.learn(Nowhere(), SilentObserver(), lambda: False)
            seconds = time.process_time() - began
            attempt = Attempt(variant, seed, training.progress.goal_reached, ended.steps, seconds)
            what = "reached" if attempt.reached else "NOT reached"
            say(f"{variant}, seed {seed}: {what} after {ended.steps:,} steps, {seconds:.1f} s")
            yield attempt


def summaries(done: Sequence[Attempt]) -> dict[str, Summary]:
    """What the attempts of each variant come to, in the order in which variants came."""
    names = dict.fromkeys(attempt.variant for attempt in done)
    return {name: _summary(name, [one for one in done if one.variant == name]) for name in names}


def _summary(variant: str, own: Sequence[Attempt]) -> Summary:
    return Summary(
        variant,
        trained=len(own),
        reached=sum(attempt.reached for attempt in own),
        steps=spread([attempt.steps if attempt.reached else None for attempt in own]),
        seconds=spread([attempt.seconds if attempt.reached else None for attempt in own]),
    )


def spread(values: Sequence[float | None]) -> Spread:
    """Median, lowest and highest; None counts as larger than any number."""
    known = sorted(float("inf") if value is None else value for value in values)
    numbers = (median(known), known[0], known[-1])
    return Spread(*(None if number == float("inf") else number for number in numbers))

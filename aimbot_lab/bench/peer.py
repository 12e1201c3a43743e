"""Two trainings of a Gymnasium environment to the same proof: a curriculum by hybrid_ppo, and plain
stable-baselines3.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median

from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.plain_ppo import learn_plain_ppo
from aimbot_lab.training.training import Training, TrainingPlan

OURS, THEIRS = "curriculum", "stable-baselines3"


@dataclass(frozen=True)
class PeerTraining:
    """A training until the proof of the last lesson, or until its steps were spent."""

    learner: str  # OURS or THEIRS
    seed: int
    steps: int  # environment steps
    seconds: float
    passed: bool


class _NoSink:
    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""


def peer_trainings(plan: TrainingPlan, *, seeds: int) -> Iterator[PeerTraining]:
    """Both trainings for each of so many seeds, by turns, each as it ends.

    The curriculum's is compiled before the first.
    """
    _ours(replace(plan, train=replace(plan.train, total_steps=1)))
    for seed in range(plan.seed, plan.seed + seeds):
        now = replace(plan, seed=seed)
        yield _ours(now)
        found = learn_plain_ppo(now)
        yield PeerTraining(THEIRS, seed, found.steps, found.seconds, found.passed)


def _ours(plan: TrainingPlan) -> PeerTraining:
    training = Training(plan)
    with closing(training):
        ended = training.learn(_NoSink(), SilentObserver(), lambda: False)
    passed = training.progress.finished
    return PeerTraining(OURS, plan.seed, ended.steps, ended.seconds, passed)


def ratio(done: list[PeerTraining]) -> float | None:
    """Median over seeds of plain stable-baselines3's seconds over the curriculum's.

    Of the seeds with which both passed; None: there is none.
    """
    by_seed: dict[int, dict[str, float]] = {}
    for one in done:
        if one.passed:
            by_seed.setdefault(one.seed, {})[one.learner] = one.seconds
    pairs = [both[THEIRS] / both[OURS] for both in by_seed.values() if len(both) == 2]
    return median(pairs) if pairs else None

"""What evaluation while an agent trains costs: the same training with it and without, by turns.

Seconds are those of the processor. With the same seed both end in the same weights, so all that
they differ in is the evaluation.
"""

import time
from dataclasses import dataclass, replace
from statistics import median

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.settings import EvaluationSettings
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import default_type, settings_with


@dataclass(frozen=True)
class EvaluationCost:
    """Seconds of a training, medians, and of one evaluation."""

    evaluations: int  # in a training
    episodes: int  # in an evaluation, of all cells
    seconds_without: float
    seconds_with: float
    seconds_an_evaluation: float
    share: float  # by which the training takes longer


class _Sink:
    """Counts evaluations."""

    def __init__(self) -> None:
        self.evaluations = 0

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:  # noqa: ARG002
        """Count one where `metrics` are of one."""
        self.evaluations += "eval/win_rate" in metrics


def measure_evaluation_cost(
    evaluation: EvaluationSettings, *, steps: int, repeats: int
) -> EvaluationCost:
    """The cost in a training of `steps` with `hybrid_ppo` on a target in all its difficulties."""
    world = default_type()
    target = world.default_target()
    plan = TrainingPlan(
        seed=1,
        env=settings_with(num_envs=512),
        lessons=(Lesson(name="all", targets={target: 1.0}),),
        train=TrainSettings(algo="hybrid_ppo", total_steps=steps),
    )
    _trained(replace(plan, train=replace(plan.train, total_steps=1)))  # compiles
    pairs = [
        (_trained(plan), _trained(replace(plan, evaluation=evaluation))) for _ in range(repeats)
    ]
    without = median(first[0] for first, _ in pairs)
    with_it = median(second[0] for _, second in pairs)
    number = pairs[0][1][1]
    return EvaluationCost(
        evaluations=number,
        episodes=max(world.targets(None)[target], 1) * evaluation.episodes,
        seconds_without=without,
        seconds_with=with_it,
        seconds_an_evaluation=(with_it - without) / number,
        share=with_it / without - 1,
    )


def _trained(plan: TrainingPlan) -> tuple[float, int]:
    """Seconds of a training, and how often it was evaluated."""
    training, sink = Training(plan), _Sink()
    began = time.process_time()
    training.learn(sink, SilentObserver(), lambda: False)
    return time.process_time() - began, sink.evaluations

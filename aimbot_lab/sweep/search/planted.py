"""A made-up task with a known optimum, scored like a training, to try a sweep out."""

import time
from math import exp, log

import numpy as np

from aimbot_lab.sweep.search.space import Params
from aimbot_lab.sweep.settings import Choices, Dimension, SweepFile
from aimbot_lab.sweep.trial_training import TrainingMonitor, TrialScore, TrialTraining

POLL_SECONDS = 0.05
BEST_RATE = 0.95  # the win rate at the optimum
STEEPNESS = 8.0  # how fast it falls off


def planted(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """Wins drawn at the rate given by the distance to the optimum, with common random numbers."""
    began, seconds = time.monotonic(), trial_training.sweep.objective.seconds
    while (gone := time.monotonic() - began) < seconds:
        if monitor.should_stop():
            return None
        monitor.at(int(1000 * gone), int(1000 * seconds), None)
        time.sleep(POLL_SECONDS)
    rate = planted_rate(trial_training.sweep, trial_training.params)
    luck = np.random.default_rng([trial_training.seed, trial_training.evaluation_seed]).random(
        trial_training.episodes
    )
    wins = int((luck < rate).sum())
    return TrialScore(
        seed=trial_training.seed,
        value=wins / trial_training.episodes,
        steps=0,
        seconds=gone,
        episodes=trial_training.episodes,
        wins=wins,
        cells={"planted": wins / trial_training.episodes},
    )


def planted_rate(sweep: SweepFile, params: Params) -> float:
    """The true win rate of the made-up task: 0.95 exp(-8 sum of z^2).

    z is a number's distance from its optimum as a share of its range, of the logarithms where the
    range is one of factors.
    """
    squares = (
        _distance(sweep.search[key], params[key], best) ** 2
        for key, best in sweep.objective.optimum.items()
    )
    return BEST_RATE * exp(-STEEPNESS * sum(squares))


def _distance(dimension: Dimension, value: float, best: float) -> float:
    if isinstance(dimension, Choices):
        return 0.0
    if dimension.log:
        return log(value / best) / log(dimension.high / dimension.low)
    return (value - best) / (dimension.high - dimension.low)

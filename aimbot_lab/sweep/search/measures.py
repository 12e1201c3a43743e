"""What a training under a trial's values is worth, by the name of the measure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from aimbot_lab.sweep.search.planted import planted
from aimbot_lab.sweep.trial_training import TrainingMonitor, TrialScore, TrialTraining


def measure(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    """What the training is worth by its sweep's measure; None where it was ended.

    Raises RunFailedError and ConfigurationError for a training that these values do not allow.
    """
    return MEASURES[trial_training.sweep.objective.measure](trial_training, monitor)


# torch is loaded only by what trains.
def _win_rate(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    from aimbot_lab.sweep.trained import win_rate

    return win_rate(trial_training, monitor)


def _steps_to_goal(trial_training: TrialTraining, monitor: TrainingMonitor) -> TrialScore | None:
    from aimbot_lab.sweep.trained import steps_to_goal

    return steps_to_goal(trial_training, monitor)


def delete_checkpoints(trial_training: TrialTraining) -> None:
    """Delete the checkpoints of a training that nobody will resume."""
    if trial_training.sweep.measure.trains:
        from aimbot_lab.sweep import trained

        trained.delete_checkpoints(trial_training)


MEASURES: Mapping[str, Callable[[TrialTraining, TrainingMonitor], TrialScore | None]] = (
    MappingProxyType({"win_rate": _win_rate, "steps_to_goal": _steps_to_goal, "planted": planted})
)

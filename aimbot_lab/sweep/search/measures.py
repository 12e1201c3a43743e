"""What a training under a trial's values is worth, by the name of the measure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from aimbot_lab.sweep.search.planted import planted
from aimbot_lab.sweep.trial_training import Score, Task, Watch


def measure(task: Task, watch: Watch) -> Score | None:
    """What the training of `task` is worth by its sweep's measure; None where it was ended.

    Raises RunFailedError and ConfigurationError for a training that these values do not allow.
    """
    return MEASURES[task.sweep.objective.measure](task, watch)


# torch is loaded only by what trains.
def _win_rate(task: Task, watch: Watch) -> Score | None:
    from aimbot_lab.sweep.trained import win_rate

    return win_rate(task, watch)


def _steps_to_goal(task: Task, watch: Watch) -> Score | None:
    from aimbot_lab.sweep.trained import steps_to_goal

    return steps_to_goal(task, watch)


def forget(task: Task) -> None:
    """Delete what is left of a training that nobody will go on with."""
    if task.sweep.objective.measure != "planted":
        from aimbot_lab.sweep import trained

        trained.forget(task)


MEASURES: Mapping[str, Callable[[Task, Watch], Score | None]] = MappingProxyType(
    {"win_rate": _win_rate, "steps_to_goal": _steps_to_goal, "planted": planted}
)

"""A process that trains a run together with the one that leads, and tracks nothing."""

from collections.abc import Callable

from aimbot_lab.experiment.runs.processes.crew import Crew
from aimbot_lab.experiment.runs.processes.preparation import prepared
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.foundation.world import closed_on_failure
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.training import TrainingOutcome


class _Unkept:
    """Metrics of a process that does not track them: the leader has the same."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Keep nothing."""


def follow_run(
    request: RunRequest, crew: Crew, *, should_stop: Callable[[], bool]
) -> TrainingOutcome:
    """How the training ended, as the leader has it too.

    Raises OtherFailedError where another process failed before it could begin, LostError where
    one is gone.
    """
    observer = SilentObserver()
    with crew.telling():
        training = prepared(request, observer, crew.exchange)
        with closed_on_failure(training.close):
            while not (order := crew.hear()).learn:
                if order.state is not None:
                    training.resume(order.state, (order.parts or {}).__getitem__)
    with closed_on_failure(training.close):
        ended = training.learn(_Unkept(), observer, should_stop)
    training.close()
    return ended

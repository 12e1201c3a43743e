"""One training with its time taken apart."""

from collections.abc import Callable
from typing import Any, NamedTuple

from aimbot_lab.bench.timing.stopwatch import Stopwatch
from aimbot_lab.training.callbacks.report_callback import MetricSink
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.training import Training

PARTS = ("simulator", "policy", "buffer", "update", "callbacks", "tracking", "rest")
OPPONENTS = "opponents"
"""The part of a training by self-play that is acting and choosing of its past selves."""


class Lap(NamedTuple):
    """What a training did from the end of its first update to the end of its last."""

    rollouts: int
    seconds: dict[str, float]  # by part

    @property
    def whole(self) -> float:
        """Seconds in all."""
        return sum(self.seconds.values())


class _Watch:
    """Watches the parts of a training; a lap begins and ends where an update does."""

    def __init__(self, training: Training, sink: MetricSink) -> None:
        model: Any = training.model  # one that learns from rollouts
        self.lap = Lap(0, {})
        self._stopwatch = Stopwatch()
        self._updates = 0
        watch = self._stopwatch.watch
        watch(training.env, "step", "simulator")
        watch(model.policy, "forward predict_values", "policy")
        watch(model.rollout_buffer, "reset add compute_returns_and_advantage", "buffer")
        watch(model, "train", "update")
        watch(sink, "log_metrics", "tracking")
        if training.self_play is not None:
            watch(training.self_play.past_selves, "act seat ended", OPPONENTS)
        model.train = self._counting(model.train)
        model._init_callback = self._watching(model._init_callback)

    def _counting(self, train: Callable[[], None]) -> Callable[[], None]:
        def counted() -> None:
            train()
            if self._updates == 0:
                self._stopwatch.begin()
            else:
                self.lap = Lap(self._updates, dict(self._stopwatch.end()))
            self._updates += 1

        return counted

    def _watching(self, init: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **named: Any) -> Any:
            callback = init(*arguments, **named)
            self._stopwatch.watch(
                callback, "update_locals on_step on_rollout_start on_rollout_end", "callbacks"
            )
            return callback

        return watched


def run_lap(training: Training, sink: MetricSink) -> Lap:
    """Train to the end; where the time went."""
    watch = _Watch(training, sink)
    training.learn(sink, SilentObserver(), lambda: False)
    return watch.lap

"""Callbacks of a user's own, called beside those of a training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, blamed
from aimbot_lab.foundation.named_code import require_allowed
from aimbot_lab.tracking.tracker import is_key
from aimbot_lab.training.callbacks.report_callback import LEARNER_PREFIX, MetricSink
from aimbot_lab.training.checkpoint import recorded_numbers
from aimbot_lab.training.checks import UNSEEN, callback_class, callback_code
from aimbot_lab.training.run_hooks import Observer
from aimbot_lab.training.settings import TrainSettings

KNOWN = (LEARNER_PREFIX, "time/", "rollout/ep_", "rollout/success_rate", "rollout/exploration_rate")
"""How the names begin of what stable-baselines3 records by itself."""


class OwnCallbacks(BaseCallback):
    """Calls those that `train` names, then those `given`, as stable-baselines3 calls one.

    What one records goes where the metrics go, once the library's logger is dumped. One that
    returns False stops the training. Raises ForeignCodeError, in one line, for what one raises,
    and ConfigurationError where one can't be made.
    """

    def __init__(self, train: TrainSettings, given: Sequence[Any] = ()) -> None:
        super().__init__()
        require_allowed(callback_code(train))
        if given and train.actors is not None:
            raise ConfigurationError(f"callbacks: {UNSEEN}: leave one of the two out")
        self.named: dict[str, BaseCallback] = {}
        for number, one in enumerate(train.callbacks):
            where = f"train.callbacks.{number}: {one.callback}"
            with blamed(f"{where} can't be made:", ConfigurationError):
                self.named[where] = callback_class(one)(**one.kwargs)
        for number, callback in enumerate(given):
            if not isinstance(callback, BaseCallback):
                what = f"must be a BaseCallback of stable-baselines3 (got {callback!r:.80})"
                raise ConfigurationError(f"callbacks.{number}: {what}")
            self.named[f"callbacks.{number}: {type(callback).__name__}"] = callback
        for where, callback in self.named.items():
            if not hasattr(callback, "n_calls"):
                raise ConfigurationError(f"{where}: its __init__ must call super().__init__()")

    def join(self, stop: Callable[[], None], observer: Observer, sink: MetricSink) -> None:
        """Call `stop` where a callback stops the training, which `observer` hears of.

        What callbacks record goes to `sink`.
        """
        self._stop, self._observer, self._sink = stop, observer, sink

    def state(self) -> list[int]:
        """How often each was called."""
        return [one.n_calls for one in self.named.values()]

    def resume(self, state: Sequence[int]) -> None:
        """Count on from what `state()` gave."""
        for one, calls in zip(self.named.values(), state, strict=False):  # others may be named now
            one.n_calls = calls

    def _init_callback(self) -> None:
        self.logger.output_formats.append(RecordedMetrics(self._sink, self._observer))
        self._call_each("init_callback", self.model)

    def _on_training_start(self) -> None:
        self._call_each("on_training_start", self.locals, self.globals)

    def _on_rollout_start(self) -> None:
        self._call_each("on_rollout_start")

    def _on_step(self) -> bool:
        for where, goes_on in self._call_each("on_step").items():
            if not goes_on:
                step = f"at step {self.num_timesteps:,}"
                what = f"returned {goes_on!r:.20} {step}, which stops the training"
                self._observer.notice(f"{where} {what}")
                self._stop()
                return False
        return True

    def _on_rollout_end(self) -> None:
        self._call_each("on_rollout_end")

    def _on_training_end(self) -> None:
        self._call_each("on_training_end")

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        """Show each what stands in the library's loop."""
        self._call_each("update_locals", locals_)

    def _call_each(self, method: str, *given: Any) -> dict[str, Any]:
        """What the `method` of each returns, by where it is named."""
        found = {}
        for where, one in self.named.items():
            with blamed(f"{where} raised", ForeignCodeError):
                found[where] = getattr(one, method)(*given)
        return found


class RecordedMetrics(KVWriter):
    """Numbers that callbacks record in the library's logger, to `sink`."""

    def __init__(self, sink: MetricSink, observer: Observer) -> None:
        self._sink, self._observer = sink, observer
        self._refused: set[str] = set()

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: Mapping[str, Any],
        step: int = 0,
    ) -> None:
        """Keep what the library does not log itself; `key_excluded` says where else it goes."""
        del key_excluded
        found = recorded_numbers(key_values)
        for name in found.keys() - self._refused:
            if not is_key(name):
                self._refused.add(name)
                what = f"a callback records {name!r:.80}, a name that MLflow refuses"
                self._observer.notice(f"{what}: it is left out")
        own = {name: value for name, value in found.items() if not name.startswith(KNOWN)}
        own = {name: value for name, value in own.items() if is_key(name)}
        if own:
            self._sink.log_metrics(step, own)

    def close(self) -> None:
        """Nothing is open."""

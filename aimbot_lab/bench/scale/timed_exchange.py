"""An exchange whose time is counted."""

import time
from collections.abc import Callable
from typing import TypeVar

from aimbot_lab.training.processes.exchange import Exchange, Float32s, Float64s, Summed, Values
from aimbot_lab.training.processes.place import Place

Given = TypeVar("Given")


class TimedExchange:
    """The `exchange`, with the seconds on the clock that its calls took, waiting included."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.seconds, self.calls = 0.0, 0

    @property
    def place(self) -> Place:
        """Where this process stands among the others."""
        return self._exchange.place

    def _timed(self, call: Callable[[], Given]) -> Given:
        begun = time.perf_counter()
        try:
            return call()
        finally:
            self.seconds += time.perf_counter() - begun
            self.calls += 1

    def sum_up(self, gradients: Float32s, terms: Float64s, *, shards: int) -> Summed:
        """The root of the tree over all shards."""
        return self._timed(lambda: self._exchange.sum_up(gradients, terms, shards=shards))

    def gather(self, data: bytes) -> list[bytes]:
        """What every process gave, in the order of ranks."""
        return self._timed(lambda: self._exchange.gather(data))

    def gather_arrays(self, array: Values) -> Values:
        """[W, ...] of arrays, in the order of ranks."""
        return self._timed(lambda: self._exchange.gather_arrays(array))

    def close(self) -> None:
        """Leave the others."""
        self._exchange.close()

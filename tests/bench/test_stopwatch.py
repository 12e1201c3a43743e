"""Time by parts, on a clock that a test turns."""

import pytest

from aimbot_lab.bench.train import Stopwatch


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Shop:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def sell(self, seconds: float) -> str:
        self._clock.now += seconds
        return self.wrap(seconds=1.0)

    def wrap(self, seconds: float) -> str:
        self._clock.now += seconds
        return "parcel"

    def burn(self) -> None:
        self._clock.now += 5.0
        raise OSError("fire")


def test_each_moment_counts_for_the_innermost_watched_call() -> None:
    clock = Clock()
    shop, watch = Shop(clock), Stopwatch(clock.perf_counter)
    watch.watch(shop, "sell burn", "counter")
    watch.watch(shop, "wrap", "table")
    shop.wrap(seconds=100.0)
    watch.begin()
    assert shop.sell(2.0) == "parcel"
    clock.now += 0.5
    with pytest.raises(OSError, match="fire"):
        shop.burn()
    shop.wrap(seconds=4.0)
    assert watch.end() == {"counter": 7.0, "table": 5.0, "rest": 0.5}
    assert watch.calls == {"counter": 2, "table": 2}

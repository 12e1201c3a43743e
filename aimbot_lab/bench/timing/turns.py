"""Measurements by turns, so that a busy moment of the machine does not hit one alone."""

import time
from collections.abc import Callable, Sequence


def best_by_turns(runs: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Seconds of the fastest of `repeats` calls of each of `runs`, called by turns."""
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for place, run in enumerate(runs):
            started = time.perf_counter()
            run()
            best[place] = min(best[place], time.perf_counter() - started)
    return best

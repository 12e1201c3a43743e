"""What a sweep costs: before it starts by its settings, then by its speed."""

import time
from collections.abc import Callable, Mapping

from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.results.report import SweepReport


class Pace:
    """How fast the trials of one stage end, measured from their first progress here on.

    What comes before it (workers that start, kernels that are compiled) comes once and says nothing
    about the speed. `clock` gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began, self._first = clock(), float("inf")

    def seconds_left(
        self, now: SweepReport, at_work: Mapping[tuple[str, int], float]
    ) -> float | None:
        """Until the last trial of the stage ends, at the speed so far."""
        confirming = now.status == "confirming"
        stage = "confirm" if confirming else "search"
        done = now.confirm_ended if confirming else now.ended
        total = now.to_confirm if confirming else now.total
        share = done + sum(share for (where, _), share in at_work.items() if where == stage)
        moment = self._clock()
        if share <= self._first:
            self._began, self._first = moment, share
            return None
        # A trial that has just ended may still be at work.
        return max(total - share, 0.0) * (moment - self._began) / (share - self._first)


def search_cost(record: SweepRecord, *, left: int) -> str:
    """How many trainings a search takes at most, and what comes after it."""
    config = record.config
    text = f"{left} trials of {config.seeds} trainings each"
    if config.measure.trains:
        steps = left * config.seeds * record.base.config.train.total_steps
        text += f", {steps:,} steps at most"
    if not config.confirm.best:
        return text
    count = config.confirm.best + 1 + len(config.confirm.also)
    fresh = f"up to {count} sets of values on {config.confirm.seeds} fresh seeds"
    return f"{text}; then {fresh} to confirm the best"


def confirmation_cost(record: SweepRecord, now: SweepReport, *, workers: int) -> str:
    """How many trainings the confirmation takes, and about how long by those of the search."""
    left = now.to_confirm - now.confirm_ended
    seeds = record.config.confirm.seeds
    text = f"confirming: {left} sets of values on {seeds} fresh seeds, {left * seeds} trainings"
    done = [trial for trial in now.trials if trial.state == "done"]
    each = [score["seconds"] for trial in done for score in trial.trainings]
    if not each:
        return text
    minutes = left * seeds * sum(each) / len(each) / min(workers, left or 1) / 60.0
    return f"{text}, about {minutes:.0f} min" if minutes >= 1 else f"{text}, under a minute"

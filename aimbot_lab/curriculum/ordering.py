"""Episodes in the order in which they began.

Wins end sooner than losses, so among the episodes that have ended shortly after a start wins
are far too many. Each episode therefore waits until all that began before it have ended.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.foundation.episodes import EpisodeBatch


class StartOrder:
    """Releases the outcomes of one scenario in the order in which their episodes began."""

    def __init__(self, scenario: int | None = None) -> None:
        self.scenario = scenario
        self._waiting: list[tuple[int, Outcome]] = []

    def begin(self, scenario: int | None) -> None:
        """Forget all that waits; from now on only episodes of `scenario` count."""
        self.scenario = scenario
        self._waiting = []

    def add(self, batch: EpisodeBatch, outcomes: Sequence[Outcome | None]) -> list[Outcome]:
        """The outcomes that `batch` released; `outcomes` has one for each of its episodes.

        An episode of another scenario, and one whose outcome is None, is dropped; neither
        keeps others waiting.
        """
        if not batch:
            return []
        for rank, scenario, outcome in zip(
            batch.order.tolist(), batch.scenario.tolist(), outcomes, strict=True
        ):
            if scenario == self.scenario and outcome is not None:
                heappush(self._waiting, (rank, outcome))
        running = batch.running_order[batch.running_scenario == self.scenario]
        return self._release(int(running.min()) if running.size else None)

    def _release(self, oldest_running: int | None) -> list[Outcome]:
        released = []
        while self._waiting and (oldest_running is None or self._waiting[0][0] < oldest_running):
            released.append(heappop(self._waiting)[1])
        return released

    @property
    def waiting(self) -> list[tuple[int, Outcome]]:
        """What waits, by rank; to be stored and given to `resume`."""
        return sorted(self._waiting)

    def resume(self, scenario: int | None, waiting: Sequence[tuple[int, Outcome]]) -> None:
        """Go on from a stored state."""
        self.scenario = scenario
        self._waiting = list(waiting)
        heapify(self._waiting)

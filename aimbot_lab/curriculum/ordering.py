"""Episodes in the order in which they began.

Wins end sooner than losses, so among the episodes that have ended shortly after a start wins
are far too many. Each episode therefore waits until all that began before it have ended.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.foundation.episodes import EpisodeBatch


class StartOrder:
    """Releases the outcomes of a lesson in the order in which their episodes began.

    The lesson's episodes are those of scenario `first` and of all later ones: a world numbers its
    scenarios upwards, and a lesson whose mix is changed goes on under further numbers.
    """

    def __init__(self, first: int | None = None) -> None:
        self.first = first
        self._waiting: list[tuple[int, Outcome]] = []

    def begin(self, first: int | None) -> None:
        """Forget all that waits; from now on episodes from scenario `first` on count."""
        self.first = first
        self._waiting = []

    def add(self, batch: EpisodeBatch, outcomes: Sequence[Outcome | None]) -> list[Outcome]:
        """The outcomes that `batch` released; `outcomes` has one for each of its episodes.

        An episode of an earlier scenario, and one whose outcome is None, is dropped; neither
        keeps others waiting.
        """
        if not batch or self.first is None:
            return []
        for rank, scenario, outcome in zip(
            batch.order.tolist(), batch.scenario.tolist(), outcomes, strict=True
        ):
            if scenario >= self.first and outcome is not None:
                heappush(self._waiting, (rank, outcome))
        running = batch.running_order[batch.running_scenario >= self.first]
        return self._release(int(running.min()) if running.size else None)

    def _release(self, oldest_running: int | None) -> list[Outcome]:
        released = []
        while self._waiting and (oldest_running is None or self._waiting[0][0] < oldest_running):
            released.append(heappop(self._waiting)[1])
        return released

    @property
    def waiting(self) -> list[tuple[int, Outcome]]:
        """What waits, by rank; to be stored and given to `resume`."""
        return sorted(self._waiting, key=lambda entry: entry[0])

    def resume(self, first: int | None, waiting: Sequence[tuple[int, Outcome]]) -> None:
        """Go on from a stored state."""
        self.first = first
        self._waiting = list(waiting)
        heapify(self._waiting)

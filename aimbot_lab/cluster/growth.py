"""When a training that has fewer processes than it may have is to begin again with more."""

import time
from collections.abc import Callable

SECONDS_BETWEEN_LOOKS = 20.0


class Growth:
    """Whether there is room for more, and a checkpoint was written since that was found."""

    def __init__(
        self,
        room: Callable[[], int],
        missing: int,
        progress: Callable[[], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._room, self._missing, self._progress, self._clock = room, missing, progress, clock
        self._looked = clock()
        self._found = False
        self._reached: object = None

    @property
    def is_due(self) -> bool:
        """Whether all are to begin again: what is lost is then as little as can be."""
        if not self._missing:
            return False
        if self._clock() - self._looked >= SECONDS_BETWEEN_LOOKS and not self._found:
            self._looked = self._clock()
            self._found, self._reached = self._room() > 0, self._progress()
        return self._found and self._progress() != self._reached

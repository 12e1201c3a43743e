"""When an actor that says nothing is taken for lost."""

from collections.abc import Callable
from time import monotonic

PATIENCE_SECONDS = 120.0
LONGEST_TIMES = 10.0


class Patience:
    """Notes when actors are asked for blocks, and which of them hang.

    An actor hangs once it has taken longer than PATIENCE_SECONDS, and LONGEST_TIMES as long as the
    slowest block so far. Before any block nobody does, because the first may compile.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._asked: dict[int, float] = {}  # when, by actor
        self._longest: float | None = None

    def ask(self, actor: int) -> None:
        """`actor` is asked for a block now."""
        self._asked[actor] = self._clock()

    def hear(self, actor: int) -> None:
        """`actor` has given its block."""
        self._longest = max(self._clock() - self._asked.pop(actor), self._longest or 0.0)

    def forget(self, actor: int) -> None:
        """No block of `actor` is waited for."""
        self._asked.pop(actor, None)

    def hanging(self) -> dict[int, float]:
        """For how many seconds each actor has taken that hangs."""
        if self._longest is None:
            return {}
        now, limit = self._clock(), max(PATIENCE_SECONDS, LONGEST_TIMES * self._longest)
        return {actor: now - then for actor, then in self._asked.items() if now - then > limit}

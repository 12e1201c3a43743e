"""When an actor that says nothing is taken for lost."""

from collections.abc import Callable
from time import monotonic

LEAST_SECONDS = 120.0
TIMES_THE_SLOWEST = 10.0
TIMES_A_PROGRAM = 3.0
MAX_GAP_SECONDS = 5.0  # between two looks at the clock; what is beyond, all were suspended


class Patience:
    """Notes when actors are asked for blocks, and which of them hang.

    An actor hangs once it has taken longer than LEAST_SECONDS, TIMES_THE_SLOWEST as long as the
    slowest block so far, and TIMES_A_PROGRAM the `program_seconds` that its world waits for a
    program of its own. It is judged from its second block on: the first may wait for a machine, and
    compile. Of the time between two calls only MAX_GAP_SECONDS count, so `hanging` is to be called
    often while blocks are waited for: who was suspended (Ctrl-Z) finds nobody hanging.
    """

    def __init__(
        self, *, program_seconds: float = 0.0, clock: Callable[[], float] = monotonic
    ) -> None:
        self._least = max(LEAST_SECONDS, TIMES_A_PROGRAM * program_seconds)
        self._clock = clock
        self._asked: dict[int, float] = {}  # when, by actor
        self._proven: set[int] = set()  # have given a block
        self._slowest = 0.0
        self._read, self._passed = clock(), 0.0

    def _now(self) -> float:
        read = self._clock()
        self._passed += min(read - self._read, MAX_GAP_SECONDS)
        self._read = read
        return self._passed

    def asked(self, actor: int) -> None:
        """`actor` is asked for a block now."""
        self._asked[actor] = self._now()

    def answered(self, actor: int) -> None:
        """`actor` has given its block."""
        then = self._asked.pop(actor, None)
        if then is not None:
            self._slowest = max(self._now() - then, self._slowest)
            self._proven.add(actor)

    def forget(self, actor: int) -> None:
        """No block of `actor` is waited for, and who comes in its place is new."""
        self._asked.pop(actor, None)
        self._proven.discard(actor)

    def hanging(self) -> dict[int, float]:
        """For how many seconds each actor has taken that hangs."""
        now, limit = self._now(), max(self._least, TIMES_THE_SLOWEST * self._slowest)
        taken = {actor: now - then for actor, then in self._asked.items()}
        return {
            actor: seconds
            for actor, seconds in taken.items()
            if actor in self._proven and seconds > limit
        }

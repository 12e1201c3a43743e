"""Blocks that wait to be learned from."""

from aimbot_lab.training.actors.block import Block
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.settings import ActorSettings


class BlockPool:
    """Holds blocks up to a number; gives the oldest ones, and drops those that are too old.

    Blocks that wait grow old. So where the learner finds all that it needs, there is room for one
    less next time, down to those of one update; once it has to wait, for those of one more update,
    up to the size that the settings name.
    """

    def __init__(self, settings: ActorSettings, counts: ActorCounts) -> None:
        self._counts = counts
        self._lag, self._size = settings.lag, settings.room
        self._wanted = settings.preload or 0  # before the first are given
        self._allowed = self._size
        self._is_awaited = False
        self._blocks: list[Block] = []

    @property
    def room(self) -> int:
        """How many more may come."""
        return max(self._allowed - len(self._blocks), 0)

    def put(self, block: Block) -> None:
        """Keep `block`. Raises ValueError where as many as the settings name wait already."""
        if len(self._blocks) == self._size:
            raise ValueError(f"the pool is full: {self._size} blocks")
        self._blocks.append(block)
        self._counts.made += 1

    def take(self, count: int, version: int) -> list[Block] | None:
        """The `count` oldest blocks for the update number `version`; None where there are fewer.

        What is older than the lag allows is dropped.
        """
        young = [one for one in self._blocks if version - one.version <= self._lag]
        self._counts.dropped += len(self._blocks) - len(young)
        self._blocks = sorted(young, key=lambda one: one.version)
        if len(self._blocks) < max(count, self._wanted):
            if not self._is_awaited:  # others may play on while one hangs
                self._allowed = min(self._allowed + count, self._size)
            self._is_awaited = True
            return None
        self._wanted = 0
        if not self._is_awaited:
            self._allowed = max(self._allowed - 1, count)
        self._is_awaited = False
        taken, self._blocks = self._blocks[:count], self._blocks[count:]
        return taken

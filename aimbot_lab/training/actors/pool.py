"""Blocks that wait to be learned from."""

from aimbot_lab.training.actors.block import Block
from aimbot_lab.training.actors.counts import ActorCounts
from aimbot_lab.training.actors.settings import ActorSettings


class BlockPool:
    """Holds blocks up to a number; gives the oldest ones, and drops those that are too old."""

    def __init__(self, settings: ActorSettings, counts: ActorCounts) -> None:
        self._counts = counts
        self._lag, self._size = settings.lag, settings.room
        self._wanted = settings.preload or 0  # before the first are given
        self._blocks: list[Block] = []

    @property
    def room(self) -> int:
        """How many more it takes."""
        return self._size - len(self._blocks)

    def put(self, block: Block) -> None:
        """Keep `block`. Raises ValueError where there is no room."""
        if not self.room:
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
            return None
        self._wanted = 0
        taken, self._blocks = self._blocks[:count], self._blocks[count:]
        return taken

"""One step of a batch as its threads share it."""

from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.kernels.atomic import Words
from aimbot_lab.foundation.kernels.jit import Bound
from aimbot_lab.foundation.threads.spin_sync import LOOKS, STRIDE
from aimbot_lab.foundation.world import Float32Array, StepBuffers
from aimbot_lab.worlds.arena.core.row_queue import Seat, Turns
from aimbot_lab.worlds.arena.core.state import ArenaState, ArenaTables, EpisodeLog


class StepTask(NamedTuple):
    """Steps the rows, begins the next episodes, or both, as its turns say.

    It knows two buffers, because callers use two by turns; `choose` says which comes next. It
    must not know the arena: a worker may hold it while the arena goes.
    """

    state: ArenaState
    tables: ArenaTables
    actions: Float32Array  # [B, 4]
    buffers: tuple[StepBuffers, StepBuffers]
    log: EpisodeLog
    seats: tuple[Seat, ...]
    turns: Turns
    advance: Bound  # `advance_rows`

    def __call__(self, seat: int) -> None:
        """Work as thread `seat`; a worker looks out for further turns."""
        self.advance(*self[:5], self.seats[seat], self.turns)

    def choose(self, buffers: StepBuffers) -> bool:
        """Have the next turn write `buffers`; whether they are known."""
        for index, known in enumerate(self.buffers):
            if known is buffers:
                self.turns.buffers[0] = index
                return True
        return False

    def begin_turn(self, duty: int) -> None:
        """Have the next turn do `duty` on every row."""
        self.turns.duty[0] = duty
        self.turns.taken.fill(0)


def new_seats(count: int, lanes: int) -> tuple[Seat, ...]:
    """Places of `count` threads, for fans of `lanes` rays."""
    return tuple(Seat(number, LOOKS, np.zeros((4, lanes), np.float32)) for number in range(count))


def new_turns(words: Words, *, threads: int) -> Turns:
    """What `threads` threads tell each other, before the first turn."""
    return Turns(
        words=words,
        taken=np.zeros(threads * STRIDE, np.int64),
        duty=np.zeros(1, np.int64),
        buffers=np.zeros(1, np.int64),
        ended=np.zeros(threads * STRIDE, np.int64),
    )

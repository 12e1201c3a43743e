"""Ways and walks on maps, done slowly and plainly, to compare the package with."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aimbot_lab.worlds.gorge.maps import SIZE, GorgeMap

Cell = tuple[int, int]
MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0))


class Score(NamedTuple):
    """What a walk is worth."""

    max_steps: int
    end_score: float
    step_score: float
    decay: bool

    def treasure(self, points: float, step: int) -> float:
        return points * (1 - step / self.max_steps) if self.decay else points

    def arrival(self, step: int) -> float:
        return self.end_score + self.step_score * (self.max_steps - step)


def neighbours(grid: GorgeMap, cell: Cell) -> Iterator[Cell]:
    for dx, dz in MOVES:
        x, z = cell[0] + dx, cell[1] + dz
        if 0 <= x < SIZE and 0 <= z < SIZE and not grid.walls[x, z]:
            yield x, z


def steps_from(grid: GorgeMap, cell: Cell, *, closed: Cell | None) -> dict[Cell, int]:
    """Steps from `cell` to each that can be reached; no way leads on from `closed`."""
    found, waiting = {cell: 0}, deque([cell])
    while waiting:
        here = waiting.popleft()
        for there in neighbours(grid, here) if here != closed else ():
            if there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


class Played(NamedTuple):
    """What came of playing actions."""

    score: float
    order: tuple[int, ...]
    steps: int
    arrived: bool


def play(
    grid: GorgeMap, start: Cell, treasures: Sequence[int], *, actions: Sequence[int], score: Score
) -> Played:
    """The game, until it is over or the actions are."""
    left = {(int(grid.sites[k][0]), int(grid.sites[k][1])): k for k in treasures}
    cell, total, order = start, 0.0, []
    for step, action in enumerate(actions, start=1):
        there = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
        moved = there in neighbours(grid, cell)
        cell = there if moved else cell
        if moved and cell in left:
            order.append(left.pop(cell))
            total += score.treasure(float(grid.points[order[-1]]), step)
        if cell == grid.end or step == score.max_steps:
            arrived = cell == grid.end
            total += score.arrival(step) if arrived else 0.0
            return Played(total, tuple(order), step, arrived)
    return Played(total, tuple(order), len(actions), False)

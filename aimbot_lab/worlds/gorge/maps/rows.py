"""A map's grid as text: 64 lines of 64 characters, the first line z = 63."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.worlds.gorge.maps.grid import MAX_SITES, SIZE, GorgeMap

OBSTACLE, ROAD, START, END = "#.SE"
DIGITS = "0123456789"
ALLOWED = {OBSTACLE, ROAD, START, END, *DIGITS}


class RowsFault(NamedTuple):
    """What is wrong with the rows, and where, both counted from 0; -1: with all of them."""

    line: int
    column: int
    reason: str


def rows_of(grid: GorgeMap) -> tuple[str, ...]:
    """The lines of `grid`."""
    signs = np.where(grid.walls, OBSTACLE, ROAD)
    signs[grid.start], signs[grid.end] = START, END
    for number, (x, z) in enumerate(grid.sites):
        signs[x, z] = DIGITS[number]
    return tuple("".join(line) for line in signs.T[::-1])


def rows_faults(rows: Sequence[str]) -> list[RowsFault]:
    """Everything that is wrong with `rows`: their shape and, where that is right, their marks."""
    return list(_shape_faults(rows)) or list(_mark_faults(rows))


def site_count(rows: Sequence[str]) -> int:
    """How many treasure sites `rows` hold."""
    return sum(line.count(digit) for line in rows for digit in DIGITS)


def place_in_rows(cell: tuple[int, int]) -> tuple[int, int]:
    """The line and the column of `cell`, (x, z), both counted from 0."""
    return SIZE - 1 - cell[1], cell[0]


def map_of_rows(rows: Sequence[str], *, name: str, points: Sequence[float]) -> GorgeMap:
    """The map of `rows` without a fault."""
    signs = np.array([list(line) for line in rows])[::-1].T  # [x, z]
    return GorgeMap(
        name=name,
        walls=np.ascontiguousarray(signs == OBSTACLE),
        start=_cell_of(signs, START),
        end=_cell_of(signs, END),
        sites=np.array([_cell_of(signs, DIGITS[k]) for k in range(site_count(rows))], np.int64),
        points=np.array(points, np.float64),
    )


def _cell_of(signs: "np.ndarray[tuple[int, ...], np.dtype[np.str_]]", sign: str) -> tuple[int, int]:
    (x, z), *_ = np.argwhere(signs == sign).tolist()
    return x, z


def _shape_faults(rows: Sequence[str]) -> Iterator[RowsFault]:
    if len(rows) != SIZE:
        yield RowsFault(-1, -1, f"must hold {SIZE} lines (got {len(rows)})")
    for number, line in enumerate(rows[:SIZE]):
        where = f"line {number + 1}"
        if len(line) != SIZE:
            what = f"{where} must have {SIZE} characters (got {len(line)})"
            yield RowsFault(number, min(len(line), SIZE), what)
        wrong = next((k for k, sign in enumerate(line) if sign not in ALLOWED), None)
        if wrong is not None:
            what = (
                f"{where}, character {wrong + 1} is {line[wrong]!a}; allowed are # . S E and 0 to 9"
            )
            yield RowsFault(number, wrong, what)


def _mark_faults(rows: Sequence[str]) -> Iterator[RowsFault]:
    counts = Counter("".join(rows))
    for mark in (START, END):
        if counts[mark] != 1:
            yield RowsFault(*_last_of(rows, mark), f"must hold one {mark} (got {counts[mark]})")
    last = max((k for k in range(MAX_SITES) if counts[DIGITS[k]]), default=-1)
    if last < 0:
        yield RowsFault(-1, -1, "must hold a site at least: site 0 is missing")
    for number in range(last + 1):
        found = counts[DIGITS[number]]
        if found == 0:
            yield RowsFault(
                *_last_of(rows, DIGITS[last]), f"site {number} is missing (there is a {last})"
            )
        elif found > 1:
            often = "twice" if found == 2 else f"{found} times"
            what = f"site {number} is there {often}"
            yield RowsFault(*_last_of(rows, DIGITS[number]), what)


def _last_of(rows: Sequence[str], sign: str) -> tuple[int, int]:
    """Line and column of the last `sign`; -1 and -1 where there is none."""
    line = max((k for k, row in enumerate(rows) if sign in row), default=-1)
    return (line, rows[line].rindex(sign)) if line >= 0 else (-1, -1)

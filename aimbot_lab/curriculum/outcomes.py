"""What one finished episode tells the curriculum, read from its result line."""

from collections.abc import Sequence
from typing import NamedTuple

from aimbot_lab.foundation.results import UnparsedLineError, parse_line
from aimbot_lab.foundation.world import Cell


class Outcome(NamedTuple):
    """An episode that counts: whether it was won, and its cell where the line names one."""

    won: bool
    cell: int  # index into the lesson's cells; -1 where the line names none of them


def read_outcome(line: str, cells: Sequence[Cell], *, cell_required: bool) -> Outcome:
    """The outcome that `line` carries.

    With one cell only, a line that names no target is that cell's. Raises UnparsedLineError,
    which is never a loss, where the line carries no result, and where `cell_required` and it
    names no cell of the lesson.
    """
    result = parse_line(line)
    if result == "command":
        raise UnparsedLineError("a command where a result was due")
    named = Cell(result.target, result.difficulty or 0) if result.target is not None else None
    if named in cells:
        return Outcome(result.won, cells.index(named))
    if named is None and len(cells) == 1:
        return Outcome(result.won, 0)
    if cell_required:
        raise UnparsedLineError("names no target and difficulty of the lesson's mix")
    return Outcome(result.won, -1)

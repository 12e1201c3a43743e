"""What one finished episode tells the curriculum, read from its result line."""

from collections.abc import Container, Sequence
from typing import Any, Literal, NamedTuple

from aimbot_lab.foundation.result_lines import UnparsedLineError, parse_line
from aimbot_lab.foundation.world import Cell

Order = Literal["beginnings", "ends"]  # in which episodes count


class Outcome(NamedTuple):
    """A finished episode of a lesson or of a cell that is watched."""

    won: bool
    cell: Cell | None  # None where the line names none that is known
    reward: float | None = None  # sum of its rewards; None where the line does not say
    counts: bool = True  # for the lesson; False: watched only

    def as_json(self) -> list[Any]:
        """Plain values, which `from_json` reads."""
        cell = None if self.cell is None else list(self.cell)
        return [int(self.won), cell, self.reward, int(self.counts)]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> "Outcome":
        """What `as_json` gave."""
        won, cell, reward, counts = values
        return cls(bool(won), None if cell is None else Cell(*cell), reward, bool(counts))


class Reading(NamedTuple):
    """How the result lines of a lesson are read."""

    cells: Sequence[Cell]  # of the lesson
    watched: Container[Cell] = ()  # of earlier ones
    cell_required: bool = False  # whether a line must name one of them
    reward_required: bool = False


def read_outcome(line: str, reading: Reading) -> Outcome:
    """The outcome that `line` carries.

    With one cell only, a line that names no target is that cell's. Raises UnparsedLineError,
    which is never a loss, where the line carries no result or not what is required.
    """
    result = parse_line(line)
    if result == "command":
        raise UnparsedLineError("a command where a result was due")
    reward = result.episode_return
    if reward is None and reading.reward_required:
        raise UnparsedLineError("carries no return, which the lesson is measured by")
    named = Cell(result.target, result.difficulty or 0) if result.target is not None else None
    if named in reading.cells:
        return Outcome(result.won, named, reward)
    if named is not None and named in reading.watched:
        return Outcome(result.won, named, reward, counts=False)
    if named is None and len(reading.cells) == 1:
        return Outcome(result.won, reading.cells[0], reward)
    if reading.cell_required:
        raise UnparsedLineError("names no target and difficulty of the lesson's mix")
    return Outcome(result.won, None, reward)

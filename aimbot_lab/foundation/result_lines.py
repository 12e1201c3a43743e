"""Result lines: how a game reports how an episode ended, written and read in one place.

A line is `Warning|Result|Win` or `Warning|Result|Lose` (the form of Aimbot-ParallelEnv), here also
`Draw`; `|key=value` fields may follow. `Warning|Command` asks the trainer to save the agent after
its next update, and `Error|...` is an error of the game. Anything else is unparsed, which is never
the same as lost. Worlds of this project give episodes as columns; lines are written from these on
demand, and parsed only where a game sends them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.errors import LabError

PREFIX = "Warning|Result|"
COMMAND_LINE = "Warning|Command"
ERROR_PREFIX = "Error|"
_OUTCOMES = {"Win": WIN, "Lose": LOSS, "Draw": DRAW}
_WORDS = {outcome: word for word, outcome in _OUTCOMES.items()}
_NUMBERS = ("difficulty", "seconds", "return")


@dataclass(frozen=True)
class EpisodeResult:
    """One parsed result line; what the line did not carry is None."""

    outcome: int  # WIN, DRAW or LOSS
    target: str | None = None
    difficulty: int | None = None
    seconds: float | None = None
    episode_return: float | None = None
    columns: Mapping[str, float] = field(default_factory=dict)  # the world's own, as far as given

    @property
    def won(self) -> bool:
        """Whether it was won; a draw is no win."""
        return self.outcome == WIN

    @property
    def cell(self) -> Cell | None:
        """Its target and difficulty; None where the line names no target."""
        return None if self.target is None else Cell(self.target, self.difficulty or 0)


class UnparsedLineError(LabError):
    """A line that is neither a result nor a command; the message gives the reason."""


def format_result_line(result: EpisodeResult) -> str:
    """The line for `result`: seconds with one decimal, the return so that it reads back.

    With columns of a world's own, all numbers are the shortest text that reads back, and the
    return comes last.
    """
    fields = ["Warning", "Result", _WORDS[result.outcome]]
    if result.target is not None:
        fields.append(f"target={result.target}")
    if result.difficulty is not None:
        fields.append(f"difficulty={result.difficulty}")
    if result.seconds is not None:
        fields.append(f"seconds={result.seconds:.1f}")
    fields += [f"{name}={shortest(value)}" for name, value in result.columns.items()]
    if result.episode_return is not None:
        total = result.episode_return
        fields.append(f"return={shortest(total) if result.columns else repr(total)}")
    return "|".join(fields)


def shortest(value: float) -> str:
    """The shortest text that reads back as `value`: 212, 1007.6, 1e+22."""
    text = repr(float(value))
    return text.removesuffix(".0")


def parse_line(line: str, columns: Sequence[str] = ()) -> EpisodeResult | Literal["command"]:
    """The result that `line` carries, or "command" for a request to save the agent.

    Fields named in `columns` may be missing; unknown extra fields are ignored. Raises
    UnparsedLineError for everything else.
    """
    text = line.strip()
    if text == COMMAND_LINE:
        return "command"
    if not text.startswith(PREFIX):
        raise UnparsedLineError("not a result line")
    outcome, *extra = text.removeprefix(PREFIX).split("|")
    if outcome not in _OUTCOMES:
        raise UnparsedLineError(f"outcome {outcome!r} is none of Win, Lose and Draw")
    fields = _fields(extra)
    known = (*_NUMBERS, *columns)
    numbers = {name: _number(name, fields[name]) for name in known if name in fields}
    difficulty = numbers.get("difficulty")
    if difficulty is not None and not difficulty.is_integer():
        raise UnparsedLineError(f"difficulty={fields['difficulty']} is not a whole number")
    return EpisodeResult(
        outcome=_OUTCOMES[outcome],
        target=fields.get("target"),
        difficulty=None if difficulty is None else int(difficulty),
        seconds=numbers.get("seconds"),
        episode_return=numbers.get("return"),
        columns={name: numbers[name] for name in columns if name in numbers},
    )


def result_line(batch: EpisodeBatch, place: int, columns: Sequence[str] | None = None) -> str:
    """The line of episode `place` of `batch`, with those of its columns that the spec names.

    Where it names none, as None, the world's own columns other than seconds follow the return.
    """
    cell, total = batch.cell[place], float(batch.returns[place])
    own = {name: float(column[place]) for name, column in batch.columns.items()}
    chosen = () if columns is None else columns
    line = format_result_line(
        EpisodeResult(
            int(batch.outcome[place]),
            target=None if cell is None else cell.target,
            difficulty=None if cell is None else cell.difficulty or None,
            seconds=own.pop("seconds", None),
            episode_return=None if math.isnan(total) else total,
            columns={name: own[name] for name in chosen},
        )
    )
    if columns is not None:
        return line
    return "|".join([line, *(f"{name}={value!r}" for name, value in own.items())])


class ParsedLines(NamedTuple):
    """What the lines of one step carry, as columns of E episodes."""

    place: npt.NDArray[np.int64]  # [E] which of the lines
    cell: tuple[Cell | None, ...]  # [E]
    outcome: npt.NDArray[np.int8]  # [E]
    returns: npt.NDArray[np.float64]  # [E] NaN where the line does not say
    seconds: npt.NDArray[np.float64]  # [E] NaN where the line does not say
    unread: tuple[str, ...]  # why each of the others carries no result
    columns: Mapping[str, npt.NDArray[np.float64]]  # [E] asked for; NaN where a line does not say


def parse_lines(lines: Sequence[str], columns: Sequence[str] = ()) -> ParsedLines:
    """The results that `lines` carry; those that carry none are left out, with the reason.

    Of a world's own columns those named in `columns` are read.
    """
    results: dict[int, EpisodeResult] = {}
    unread = []
    for place, line in enumerate(lines):
        try:
            results[place] = parse_result(line, columns)
        except UnparsedLineError as error:
            unread.append(str(error))
    found = results.values()
    return ParsedLines(
        place=np.array(list(results), np.int64),
        cell=tuple(result.cell for result in found),
        outcome=np.array([result.outcome for result in found], np.int8),
        returns=np.array([result.episode_return for result in found], np.float64),
        seconds=np.array([result.seconds for result in found], np.float64),
        unread=tuple(unread),
        columns={
            name: np.array([result.columns.get(name, math.nan) for result in found])
            for name in columns
        },
    )


def parse_result(line: str, columns: Sequence[str] = ()) -> EpisodeResult:
    """The result that `line` carries. Raises UnparsedLineError where it carries none."""
    result = parse_line(line, columns)
    if result == "command":
        raise UnparsedLineError("a command where a result was due")
    return result


def _fields(extra: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for item in extra:
        name, separator, value = item.partition("=")
        if not separator:
            raise UnparsedLineError(f"field {item!r} is not key=value")
        if name in fields:
            raise UnparsedLineError(f"field {name} is given twice")
        fields[name] = value
    return fields


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UnparsedLineError(f"{name}={text} is not a number") from None
    if not math.isfinite(value):
        raise UnparsedLineError(f"{name}={text} is not finite")
    return value

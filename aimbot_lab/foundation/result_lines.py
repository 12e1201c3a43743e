"""Result lines: how a game tells how an episode ended, written and read in one place.

A line is `Warning|Result|Win` or `Warning|Result|Lose` (the form of Aimbot-ParallelEnv);
this project's arena appends `|key=value` fields. `Warning|Command` asks the trainer to save
the agent. Anything else is unparsed, which is never the same as lost.
"""

import math
from dataclasses import dataclass
from typing import Literal

from aimbot_lab.foundation.errors import LabError

PREFIX = "Warning|Result|"
COMMAND_LINE = "Warning|Command"
_OUTCOMES = {"Win": True, "Lose": False}
_NUMBERS = ("difficulty", "seconds", "return")


@dataclass(frozen=True)
class EpisodeResult:
    """One parsed result line; what the line did not carry is None."""

    won: bool
    target: str | None = None
    difficulty: int | None = None
    seconds: float | None = None
    episode_return: float | None = None


class UnparsedLineError(LabError):
    """A line that is neither a result nor a command; the message gives the reason."""


def format_result_line(result: EpisodeResult) -> str:
    """The line for `result`: seconds with one decimal, the return so that it reads back."""
    fields = ["Warning", "Result", "Win" if result.won else "Lose"]
    if result.target is not None:
        fields.append(f"target={result.target}")
    if result.difficulty is not None:
        fields.append(f"difficulty={result.difficulty}")
    if result.seconds is not None:
        fields.append(f"seconds={result.seconds:.1f}")
    if result.episode_return is not None:
        fields.append(f"return={result.episode_return!r}")
    return "|".join(fields)


def parse_line(line: str) -> EpisodeResult | Literal["command"]:
    """The result that `line` carries, or "command" for a request to save the agent.

    Unknown extra fields are ignored. Raises UnparsedLineError for everything else.
    """
    text = line.strip()
    if text == COMMAND_LINE:
        return "command"
    if not text.startswith(PREFIX):
        raise UnparsedLineError("not a result line")
    outcome, *extra = text.removeprefix(PREFIX).split("|")
    if outcome not in _OUTCOMES:
        raise UnparsedLineError(f"outcome {outcome!r} is neither Win nor Lose")
    fields = _fields(extra)
    numbers = {name: _number(name, fields[name]) for name in _NUMBERS if name in fields}
    difficulty = numbers.get("difficulty")
    if difficulty is not None and not difficulty.is_integer():
        raise UnparsedLineError(f"difficulty={fields['difficulty']} is not a whole number")
    return EpisodeResult(
        won=_OUTCOMES[outcome],
        target=fields.get("target"),
        difficulty=None if difficulty is None else int(difficulty),
        seconds=numbers.get("seconds"),
        episode_return=numbers.get("return"),
    )


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

"""What a run keeps of its curriculum: every counted episode, and every event, as they come.

`EPISODES_NAME` has one line for each episode, in the order in which checks read them, whose `won`
is 1, 0 or, where it was drawn, 0.5, and where a lesson asks for the running rating, that as well;
`EVENTS_NAME` one JSON document a line for what doesn't follow from the episodes alone. Both only
grow. Each piece of text comes with the place where it belongs, in bytes from the beginning, so
that a run which goes on from an earlier state overwrites what came after that state.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter

from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.forgetting_monitor import Regression
from aimbot_lab.curriculum.reports import Check
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.settings import MAX_DIGITS

EPISODES_NAME = "episodes.csv"
EVENTS_NAME = "events.jsonl"
_HEAD = "step,lesson,target,difficulty,won,use,return\n"
_HEAD_RATED = "step,lesson,target,difficulty,won,use,return,rating\n"
DAMAGED = "the run's record is damaged"
ADVICE = "put back the file as the run wrote it"


class Piece(NamedTuple):
    """Text that belongs into a file of the run."""

    name: str
    text: str
    place: int  # in bytes


class CountedEpisode(NamedTuple):
    """One line of `EPISODES_NAME`."""

    step: int  # environment steps when it was counted
    lesson: int  # from 0
    outcome: Outcome  # which says whether the lesson counted it, or it is watched only


class CurriculumRecord:
    """Lines since the last `begin_step`, and how long the files are."""

    def __init__(self, *, with_rewards: bool, with_ratings: bool = False) -> None:
        self._with_rewards, self._with_ratings = with_rewards, with_ratings
        self._sizes = {EPISODES_NAME: 0, EVENTS_NAME: 0}
        self._episodes: list[str] = []
        self._events: list[str] = []
        self._pieces: list[Piece] = []

    def begin_step(self) -> None:
        """Forget the pieces of the step before."""
        self._pieces = []

    def episode(self, step: int, lesson: int, *, outcome: Outcome) -> None:
        """Keep a counted episode."""
        target, difficulty = outcome.cell or ("", "")
        reward = _written(outcome.reward) if self._with_rewards else ""
        won = "0.5" if outcome.drawn else int(outcome.won)
        rating = f",{_written(outcome.rating)}" if self._with_ratings else ""
        use = "lesson" if outcome.counts else "watch"
        place = f"{step},{lesson + 1},{target},{difficulty}"
        self._episodes.append(f"{place},{won},{use},{reward}{rating}\n")

    def event(self, kind: str, document: Mapping[str, Any]) -> None:
        """Keep an event."""
        self._events.append(json.dumps({"kind": kind, **document}) + "\n")

    def lesson_end(self, check: Check | None, *, following: int | None) -> None:
        """Keep how a lesson ended, and which lesson follows (from 0)."""
        if check is not None:
            self.event("lesson", {**asdict(check), "lesson": check.lesson + 1, "next": following})

    def end_step(self) -> None:
        """Turn what the step brought into pieces."""
        for name, lines in ((EPISODES_NAME, self._episodes), (EVENTS_NAME, self._events)):
            if lines:
                begins = name == EPISODES_NAME and not self._sizes[name]
                head = self._head if begins else ""
                text = head + "".join(lines)
                self._pieces.append(Piece(name, text, self._sizes[name]))
                self._sizes[name] += len(text.encode())
                lines.clear()

    @property
    def _head(self) -> str:
        return _HEAD_RATED if self._with_ratings else _HEAD

    @property
    def pieces(self) -> Sequence[Piece]:
        """The texts of the last step."""
        return self._pieces

    def state(self) -> dict[str, int]:
        """Plain JSON values."""
        return dict(self._sizes)

    def resume(self, state: Mapping[str, int]) -> None:
        """Go on from what `state()` gave; pieces without text cut what came after it here."""
        cut = [Piece(name, "", size) for name, size in state.items() if size < self._sizes[name]]
        self._sizes, self._pieces = dict(state), cut


@dataclass(frozen=True)
class KeptRecord:
    """What a run has kept of its curriculum."""

    episodes: tuple[CountedEpisode, ...]
    events: tuple[dict[str, Any], ...]  # each with the keys that the class of its kind has below


Count = Annotated[int, Field(ge=0, le=10**MAX_DIGITS)]
Weights = tuple[float, ...]


@dataclass(frozen=True)
class _Event:
    step: Count
    lesson: Annotated[Count, Field(ge=1)]
    episodes: Count  # that the lesson had counted


@dataclass(frozen=True)
class _LessonEnd(_Event):
    kind: Literal["lesson"]
    statistic: float
    bound: float
    decision: Literal["promote", "finish", "demote"]
    next: Count | None  # from 0


@dataclass(frozen=True)
class _WeightsMoved(_Event):
    kind: Literal["weights"]
    target: str
    weights: Weights
    locked: tuple[bool, ...]


@dataclass(frozen=True)
class _TargetsMoved(_Event):
    kind: Literal["targets"]
    targets: tuple[str, ...]
    weights: Weights
    locked: tuple[bool, ...]


@dataclass(frozen=True)
class _GreedilyPlayed(_Event):
    kind: Literal["greedy"]
    played: Count
    won: Count
    passed: bool


@dataclass(frozen=True)
class _Regressed(_Event):
    kind: Literal["regression"]
    regression: Regression


_EVENTS: TypeAdapter[_Event] = TypeAdapter(
    Annotated[
        _LessonEnd | _WeightsMoved | _TargetsMoved | _GreedilyPlayed | _Regressed,
        Field(discriminator="kind"),
    ]
)
T = TypeVar("T")


def read_record(episodes: str, events: str) -> KeptRecord:
    """The record in these two texts; a last line that a crash left torn is passed over.

    Raises LabError, which names the first line that no run writes.
    """
    head, lines = _lines(episodes)[:1], _lines(episodes)[1:]
    if head and head[0] not in (_HEAD, _HEAD_RATED):
        raise _damaged(EPISODES_NAME, 1)
    columns = head[0].count(",") + 1 if head else 0
    return KeptRecord(
        tuple(_read(EPISODES_NAME, lines, lambda line: _episode(line, columns), first=2)),
        tuple(_read(EVENTS_NAME, _lines(events), _event, first=1)),
    )


def _lines(text: str) -> list[str]:
    """The whole lines of `text`."""
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def _read(name: str, lines: Sequence[str], read: Callable[[str], T], *, first: int) -> Iterator[T]:
    for number, line in enumerate(lines, start=first):
        try:
            yield read(line)
        except ValueError as error:
            raise _damaged(name, number) from error


def _damaged(name: str, line: int) -> LabError:
    return LabError(f"{name}:{line}: {DAMAGED}: no run writes such a line; {ADVICE}")


def _written(value: float | None) -> str:
    return "" if value is None else repr(value)


def _event(line: str) -> dict[str, Any]:
    _EVENTS.validate_json(line, strict=True)
    return dict(json.loads(line))


def _episode(line: str, columns: int) -> CountedEpisode:
    step, lesson, target, difficulty, won, use, reward, *more = line.rstrip("\n").split(",")
    numbers = int(step), int(lesson) - 1, int(difficulty or 0)
    known = won in ("0", "1", "0.5") and use in ("lesson", "watch")
    if not known or min(numbers) < 0 or max(numbers) > 10**MAX_DIGITS or len(more) != columns - 7:
        raise ValueError(line)
    cell = Cell(target, numbers[2]) if target else None
    rating = _number(more[0]) if more else None
    outcome = Outcome(won == "1", cell, _number(reward), use == "lesson", won == "0.5", rating)
    return CountedEpisode(*numbers[:2], outcome)


def _number(text: str) -> float | None:
    number = float(text) if text else None
    if number is not None and math.isnan(number):
        raise ValueError(text)
    return number

"""A curriculum's way through its lessons, driven by finished episodes, and what a run keeps of it.

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

from aimbot_lab.curriculum.current_lesson import (
    CurrentLesson,
    ForgettingMonitor,
    GreedyProof,
    Regression,
)
from aimbot_lab.curriculum.evidence import ALL_CELLS, Outcome, Reader, StartOrder
from aimbot_lab.curriculum.reports import (
    CellReport,
    Check,
    CurriculumView,
    Decision,
    LessonReport,
    cell_reports,
    floors,
    held_back,
    lesson_report,
    missing,
    not_begun,
    view,
)
from aimbot_lab.curriculum.rules import MlAgentsMemory
from aimbot_lab.curriculum.settings import (
    ForgettingSettings,
    Lesson,
    LiveMix,
    WeightChange,
    cell_shares,
    checked_chain,
)
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.settings import MAX_DIGITS
from aimbot_lab.foundation.world import Scenario

EPISODES_NAME = "episodes.csv"
EVENTS_NAME = "events.jsonl"
_HEAD = "step,lesson,target,difficulty,won,use,return\n"
_HEAD_RATED = "step,lesson,target,difficulty,won,use,return,rating\n"
DAMAGED = "the run's record is damaged"
ADVICE = "put back the file as the run wrote it"


Piece = tuple[str, str, int]
"""Name of a file of the run, text that belongs into it, and where, in bytes."""


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
                head = _HEAD_RATED if self._with_ratings else _HEAD
                text = (head if begins else "") + "".join(lines)
                self._pieces.append((name, text, self._sizes[name]))
                self._sizes[name] += len(text.encode())
                lines.clear()

    @property
    def pieces(self) -> Sequence[Piece]:
        """The texts of the last step."""
        return self._pieces

    def state(self) -> dict[str, int]:
        """Plain JSON values."""
        return dict(self._sizes)

    def resume(self, state: Mapping[str, int]) -> None:
        """Go on from what `state()` gave; pieces without text cut what came after it here."""
        cut = [(name, "", size) for name, size in state.items() if size < self._sizes[name]]
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


class LessonPath:
    """The lessons in order, and the reports of those that are passed.

    Beside each report stands what the state keeps of the lesson: of that hashes of trainings are
    made, so it stays as it is while reports learn to say more.
    """

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._lessons = lessons
        self._passed: list[tuple[dict[str, Any], LessonReport]] = []

    @property
    def finished(self) -> bool:
        """Whether the last lesson is passed."""
        return len(self._passed) == len(self._lessons)

    @property
    def number(self) -> int:
        """Number of the present lesson, from 0; of the last one once all are passed."""
        return len(self._passed) - self.finished

    @property
    def lesson(self) -> Lesson:
        """The present lesson."""
        return self._lessons[self.number]

    @property
    def is_last(self) -> bool:
        """Whether no lesson comes after the present one."""
        return self.number == len(self._lessons) - 1

    @property
    def goal_reached(self) -> bool:
        """Whether training may end here, won: the last lesson passed or asks for nothing."""
        return self.finished or (self.is_last and self.lesson.completion_criteria is None)

    def advance(self, present: CurrentLesson, step: int) -> None:
        """The present lesson is passed at `step`."""
        (window,) = present.windows.highest((ALL_CELLS,))
        kept = {
            "name": present.lesson.name,
            "ended_at_step": step,
            "episodes": present.episodes,
            "window": window.episodes,
            **window.rate._asdict(),
        }
        self._passed.append((kept, lesson_report(present, step)))

    def go_back(self, number: int) -> None:
        """Lesson `number` is the present one again."""
        del self._passed[number:]

    def reports(self, present: CurrentLesson) -> tuple[LessonReport, ...]:
        """Every lesson in order: how it ended, as it stands, or not begun (no episodes)."""
        current = () if self.finished else (lesson_report(present, None),)
        begun = (*(report for _, report in self._passed), *current)
        return (*begun, *(not_begun(lesson) for lesson in self._lessons[len(begun) :]))

    def state(self) -> list[dict[str, Any]]:
        """Plain JSON values."""
        return [kept for kept, _ in self._passed]

    @property
    def passed(self) -> list[dict[str, Any]]:
        """The reports of the lessons passed, as plain JSON values."""
        return [asdict(report) for _, report in self._passed]

    def resume(self, state: Sequence[dict[str, Any]], passed: Sequence[Mapping[str, Any]]) -> None:
        """Go on from what `state()` and `passed` gave for the same lessons."""
        reports = [LessonReport(**report) for report in passed]
        self._passed = list(zip(state, reports, strict=True))


REPORTS = "reports"  # key of the state's part that nothing but reports depends on


class CurriculumProgress:
    """The current lesson, its open question, how the lessons before went, and what is watched.

        of each step of the world, in their order:
            check = progress.add(batch, step=steps)
        before the first one, and where a rollout begins while `wants_scenario` is true:
            progress.begin_scenario(world.set_scenario(progress.scenario))

    Episodes count only from the scenario that a lesson begins with to the promotion that ends it.
    `difficulties` is the world's number of each target; `total_steps` is needed where a lesson is
    measured by progress. Without `has_wins` no episode can be won. Raises ConfigurationError where
    the lessons make no chain.
    """

    def __init__(
        self,
        lessons: Sequence[Lesson],
        difficulties: Mapping[str, int],
        *,
        total_steps: int | None = None,
        forgetting: ForgettingSettings | None = None,
        has_wins: bool = True,
    ) -> None:
        self._has_wins = has_wins
        self._lessons = checked_chain(lessons, total_steps)
        self._difficulties, self._total_steps = dict(difficulties), total_steps
        asked = [one.completion_criteria for one in lessons if one.completion_criteria]
        self._memory = MlAgentsMemory(asked)
        self._record = CurriculumRecord(
            with_rewards=any(one.measured.of_rewards for one in asked),
            with_ratings=any(one.by_running_rating for one in asked),
        )
        self._monitor = ForgettingMonitor(forgetting or ForgettingSettings(), self._lessons)
        self._path = LessonPath(self._lessons)
        self._order, self._reader = StartOrder(), Reader()
        self.step, self.wants_scenario = 0, True  # environment steps so far
        self.greedy = GreedyProof()
        self.regressions: list[Regression] = []
        self.shown: list[Outcome] = []  # counted in the last step, as they began
        self._open_lesson()

    def _open_lesson(self) -> None:
        """Begin the lesson that is due."""
        lesson = self._path.lesson
        self._order.begin(None)
        self._reader.begin_lesson()
        self._memory.end_lesson()
        self.mix = LiveMix(lesson, self._difficulties)
        self._open = CurrentLesson(
            lesson, self.mix.cells, memory=self._memory, has_wins=self._has_wins
        )
        self._monitor.begin_lesson(self.lesson)
        self.wants_scenario = True

    @property
    def lesson(self) -> int:
        """Number of the current lesson, from 0."""
        return self._path.number

    @property
    def finished(self) -> bool:
        """Whether the last lesson is passed."""
        return self._path.finished

    @property
    def scenario(self) -> Scenario:
        """What the next episodes are to be drawn from."""
        return self.mix.with_shares(self._monitor.shares(self.mix.cells))

    @property
    def goal_reached(self) -> bool:
        """Whether training may end here, won: the last lesson passed or asks for nothing."""
        return self._path.goal_reached

    @property
    def unparsed(self) -> Mapping[str, int]:
        """How many episodes could not be counted, by reason."""
        return self._reader.unparsed

    @property
    def record(self) -> Sequence[Piece]:
        """What the run should keep of the last call of `add`."""
        return self._record.pieces

    @property
    def counts_from(self) -> int | None:
        """The first scenario whose episodes count; None where none does."""
        return self._order.first

    def begin_scenario(self, number: int) -> None:
        """Count the episodes that the world draws as scenario `number` and as later ones."""
        if self._order.first is None:
            self._order.begin(number)
        shares = self.mix.counted_shares(self._monitor.shares(self.mix.cells))
        self._reader.count_shares(number, shares)
        self.wants_scenario = False

    def change_weights(self, change: WeightChange, set_scenario: Callable[[Scenario], int]) -> None:
        """Make `change` to the present lesson's mix, in force at each next episode.

        `set_scenario` is the world's. Raises ConfigurationError, with nothing changed.
        """
        if self.finished:
            raise ConfigurationError("the last lesson is passed: nothing is drawn any more")
        mix = self.mix.changed(change)
        number = set_scenario(mix.with_shares(self._monitor.shares(mix.cells)))
        self.mix = mix
        self._open.ask(mix.cells)
        self.begin_scenario(number)
        self._note(**mix.described(change.target))

    def add(self, batch: EpisodeBatch | None, *, step: int) -> Check | None:
        """The check that a step of the world led to; None where nothing was to be checked.

        `batch` has the episodes that ended in it, all at the environment step `step`.
        """
        self._record.begin_step()
        self.step, self.shown = step, []
        if self.finished:
            return None
        outcomes = self._read(batch) if batch else []
        released = self._order.add(batch, outcomes) if batch else []
        ended: list[Outcome] = []  # that count for a rule which takes them as they end
        if batch and self._order.first is not None:  # None: between two lessons
            ended = [one._replace(rating=batch.rating) for one in outcomes if one and one.counts]
        check = self._take(released, ended)
        self._record.end_step()
        return check

    def _read(self, batch: EpisodeBatch) -> list[Outcome | None]:
        criteria = self._open.lesson.completion_criteria
        return self._reader.read(
            batch,
            first=self._order.first,
            known=self.mix.known,
            watched=self._monitor.cells,
            cell_required=criteria is not None and criteria.every_cell,
            reward_required=criteria is not None and criteria.measured.of_rewards,
        )

    def _take(self, released: Sequence[Outcome], ended: Sequence[Outcome]) -> Check | None:
        before = self._open.episodes
        for outcome in released:
            regression = self._watch(outcome)
            if regression is not None and regression.demotes:
                check = self._check("demote")
                self._record.lesson_end(check, following=regression.lesson)
                self._path.go_back(regression.lesson)
                self._open_lesson()
                return check
            self._show(outcome)
            if self._open.passed:
                return self._move_on()
        for outcome in ended if self._open.counts_ends else ():
            self._count(outcome)
        self._open.look(self.step / self._total_steps if self._total_steps else 0.0)
        if self._open.passed:
            return self._move_on()
        rule = self._open.rule
        asked = rule is not None and (rule.every_step or self._open.episodes > before)
        return self._check("stay") if asked else None

    def _show(self, outcome: Outcome) -> None:
        if not outcome.counts:
            self._record.episode(self.step, self.lesson, outcome=outcome)
            return
        self._open.show(outcome)
        self.shown.append(outcome)
        if not self._open.counts_ends:
            self._count(outcome)

    def _count(self, outcome: Outcome) -> None:
        self._open.count(outcome)
        self._record.episode(self.step, self.lesson, outcome=outcome)
        check = self.greedy.ask(self._open, self.mix.scenario)
        if check is not None:
            self._note("greedy", **asdict(check))

    def _watch(self, outcome: Outcome) -> Regression | None:
        regression = self._monitor.count(outcome)
        if regression is not None:
            self.regressions.append(regression)
            self._note("regression", regression=asdict(regression))
            self.wants_scenario |= regression.action == "rehearse"
        return regression

    def _note(self, kind: str, **about: Any) -> None:
        place = {"step": self.step, "lesson": self.lesson + 1, "episodes": self._open.episodes}
        self._record.event(kind, {**place, **about})

    def _check(self, decision: Decision) -> Check | None:
        rule = self._open.rule
        if rule is None:
            return None
        place = self.lesson, self.step, self._open.episodes
        return Check(*place, rule.statistic, rule.bound, decision)

    def _move_on(self) -> Check | None:
        """End the lesson, passed, and begin the next."""
        last = self._path.is_last
        check = self._check("finish" if last else "promote")
        self._record.lesson_end(check, following=None if last else self.lesson + 1)
        self._monitor.take(floors(self._open, self._monitor.margin))
        self._path.advance(self._open, self.step)
        if last:
            self._order.begin(None)
        else:
            self._open_lesson()
        return check

    @property
    def lesson_reports(self) -> tuple[LessonReport, ...]:
        """Every lesson in order: how it ended, as it stands, or not begun (no episodes)."""
        return self._path.reports(self._open)

    @property
    def cell_reports(self) -> tuple[CellReport, ...]:
        """The current (or last) lesson's cells over its last counted episodes."""
        return cell_reports(self._open)

    @property
    def view(self) -> CurriculumView:
        """Where the curriculum stands."""
        other = self.mix.moved or self._monitor.shares(self.mix.cells)
        shares = cell_shares(self.scenario) if other else None
        return view(self._open, lesson=self.lesson, lessons=len(self._lessons), shares=shares)

    def held_back_by(self) -> tuple[CellReport, ...]:
        """Of the cells that have not passed, those with the lowest win rate, or no episode.

        Empty where the lesson is not judged by evidence of its win rate: `missing` says more.
        """
        return held_back(self._open)

    @property
    def missing(self) -> str:
        """What the current lesson lacks to be passed, in words; empty where its cells lack it."""
        return missing(self._open)

    def state(self) -> dict[str, Any]:
        """Everything the future depends on, as plain JSON values."""
        return {
            "passed": self._path.state(),
            "step": self.step,
            "wants_scenario": self.wants_scenario,
            "regressions": [asdict(regression) for regression in self.regressions],
            "reader": self._reader.state(),
            "scenario": self._order.first,
            "waiting": [[rank, *outcome.as_json()] for rank, outcome in self._order.waiting],
            "mix": self.mix.state(),
            "open": self._open.state(),
            "ml_agents": self._memory.state(),
            "guard": self._monitor.state(),
            "record": self._record.state(),
            REPORTS: {"passed": self._path.passed, "open": self._open.tally()},
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lessons."""
        reports = state.get(REPORTS, {"passed": state["passed"], "open": {}})  # not in old ones
        self._path.resume(state["passed"], reports["passed"])
        self._open_lesson()
        self.step, self.wants_scenario = state["step"], state["wants_scenario"]
        self.regressions = [Regression(**regression) for regression in state["regressions"]]
        self._reader.resume(state["reader"])
        waiting = [(rank, Outcome.from_json(outcome)) for rank, *outcome in state["waiting"]]
        self._order.resume(state["scenario"], waiting)
        self.mix.resume(state["mix"])
        self._open.ask(self.mix.cells)
        self._open.resume(state["open"], reports["open"])
        self._memory.resume(state["ml_agents"])
        self._monitor.resume(state["guard"])
        self._record.resume(state["record"])

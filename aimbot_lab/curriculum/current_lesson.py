"""The lesson that is learned, and a watch on the lessons before it, which must not be forgotten.

Each cell that was passed has a floor: what was passed, less a margin. Against "the win rate never
fell below the floor" the same bettor plays as for a promotion, on losses: its wealth reaches
1/alpha with a chance of at most alpha, ever. The n-th question that a run asks, from 1, has
alpha / (n (n + 1)); these sum to alpha, so that is the chance of any false report in a whole run.
A cell that was lost is asked whether it is back above its floor, in the same way, before it is
watched again: neither can follow from luck, so nothing flips back and forth.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from aimbot_lab.curriculum.evidence import (
    ALL_CELLS,
    Evidence,
    EvidenceTest,
    Outcome,
    RateWindow,
    WinRateWindows,
)
from aimbot_lab.curriculum.rules import (
    CompletionCriteria,
    MlAgentsMemory,
    Rule,
    evidence_test,
)
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.shown_text import percent, shown_rate
from aimbot_lab.foundation.world import Scenario

RECENT_EPISODES = 500


class CurrentLesson:
    """Counts a lesson's outcomes in the order in which they are given.

    `windows` are those that win rates are shown of, and `recent` rewards: in the order of their
    beginnings under every rule.
    """

    def __init__(
        self,
        lesson: Lesson,
        cells: Sequence[Cell],
        *,
        memory: MlAgentsMemory,
        has_wins: bool = True,
    ) -> None:
        self.lesson, self.has_wins = lesson, has_wins
        self.cells = tuple(cells)
        self.episodes = 0
        self.windows = WinRateWindows()
        self.recent: deque[Outcome] = deque(maxlen=RECENT_EPISODES)
        self._memory = memory
        self.rule: Rule | None = None
        self.begin_evidence()

    def begin_evidence(self) -> None:
        """Ask the lesson's rule as if no episode had been counted; what is shown stays."""
        criteria = self.lesson.completion_criteria
        if criteria is not None:
            self.rule = criteria.rule_type(criteria, self.cells, self._memory)

    @property
    def counts_ends(self) -> bool:
        """Whether the rule wants episodes in the order of their ends."""
        return self.rule is not None and self.rule.order == "ends"

    @property
    def passed(self) -> bool:
        """Whether the lesson's criterion is met at this very moment."""
        return self.rule is not None and self.rule.passed

    @property
    def counted(self) -> int:
        """How many episodes count, in the order that the rule wants."""
        return self.rule.episodes if self.rule is not None and self.counts_ends else self.episodes

    @property
    def proven(self) -> Mapping[Cell, RateWindow]:
        """What a lesson that was passed by evidence of its win rate has proven; else empty."""
        return {} if self.rule is None else self.rule.proven()

    @property
    def mean_return(self) -> float | None:
        """The mean of the last returns where no episode can be won; None: not known, or it can."""
        known = [] if self.has_wins else [one.reward for one in self.recent]
        return fmean(found) if (found := [one for one in known if one is not None]) else None

    @property
    def lacking(self) -> tuple[bool, ...]:
        """Which cells have not passed; where all are judged together, all or none of them."""
        return tuple(self.rule is not None and self.rule.lacks(cell) for cell in self.cells)

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now."""
        self.cells = tuple(cells)
        if self.rule is not None:
            self.rule.ask(cells)

    def show(self, outcome: Outcome) -> None:
        """Let an episode be seen in win rates."""
        self.episodes += 1
        if self.has_wins:
            self.windows.count(outcome.cell, won=outcome.won)
        self.recent.append(outcome)

    def count(self, outcome: Outcome) -> None:
        """Let an episode count for the rule."""
        if self.rule is not None:
            self.rule.count(outcome)

    def look(self, share: float) -> None:
        """A step of the world is over; `share` of all training steps are taken."""
        if self.rule is not None:
            self.rule.look(share)

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        return {
            "episodes": self.episodes,
            "windows": self.windows.state(),
            "recent": [outcome.as_json() for outcome in self.recent],
            "rule": None if self.rule is None else self.rule.state(),
        }

    def tally(self) -> dict[str, Any]:
        """What only reports need beside `state()`."""
        return {} if self.rule is None else self.rule.tally()

    def resume(self, state: Mapping[str, Any], tally: Mapping[str, Any]) -> None:
        """Go on from what `state()` and `tally()` gave for the same lesson and cells."""
        self.episodes = state["episodes"]
        self.windows.resume(state["windows"])
        self.recent.extend(map(Outcome.from_json, state["recent"]))
        if self.rule is not None:
            self.rule.resume(state["rule"])
            self.rule.resume_tally(tally)


GreedyPlay = Callable[[Scenario, int], Sequence[Outcome]]
"""Outcomes of a number of episodes of a scenario, by the agent as it would be delivered now."""

MIN_EPISODES = 500
FACTOR = 2  # times as many episodes as an agent needs that always wins
MAX_EPISODES = 50_000


@dataclass(frozen=True)
class GreedyCheck:
    """Whether an agent proves a lesson without exploration."""

    played: int  # episodes
    won: int
    passed: bool

    @property
    def line(self) -> str:
        """What it found, for a person."""
        won = f"{self.won:,} of {self.played:,} episodes"
        if self.passed:
            return f"without exploration it won {won}, which proves the lesson as well"
        return (
            f"enough evidence while it explores, but without exploration it won {won}: "
            "the lesson continues and its evidence starts over"
        )


class GreedyProof:
    """Asks for the proof where evidence would end a lesson of a learner that explores.

    `play` is None where the learner shows in its training what it will do afterwards.
    """

    def __init__(self) -> None:
        self.play: GreedyPlay | None = None
        self._checks: list[GreedyCheck] = []

    def ask(self, lesson: CurrentLesson, scenario: Scenario) -> GreedyCheck | None:
        """The check that this moment of `lesson` led to, whose episodes come from `scenario`.

        Where it failed, the lesson's evidence has begun anew. None where nothing was to be checked.
        """
        criteria = lesson.lesson.completion_criteria
        if self.play is None or criteria is None or not lesson.passed:
            return None
        if not (criteria.by_evidence and criteria.greedy_proof):
            return None
        check = greedy_check(criteria, scenario, lesson.cells, self.play)
        self._checks.append(check)
        if not check.passed:
            lesson.begin_evidence()
        return check

    def take(self) -> Sequence[GreedyCheck]:
        """The checks since the last call."""
        taken, self._checks = self._checks, []
        return taken


def greedy_check(
    criteria: CompletionCriteria, scenario: Scenario, cells: Sequence[Cell], play: GreedyPlay
) -> GreedyCheck:
    """Ask the lesson's own test about episodes of `scenario`, of each of its `cells` if need be."""
    asked = replace(criteria, min_lesson_length=0)
    rule = criteria.rule_type(asked, cells, MlAgentsMemory([criteria]))
    played, won = 0, 0
    for cell, part in _parts(criteria, scenario, cells):
        for outcome in play(part, episodes_needed(criteria)):
            rule.count(outcome._replace(cell=cell))
            played, won = played + 1, won + outcome.won
    return GreedyCheck(played, won, rule.passed)


def episodes_needed(criteria: CompletionCriteria) -> int:
    """Episodes after which a good agent has most likely passed, all together or of each cell."""
    test, count = evidence_test(criteria), MIN_EPISODES // FACTOR
    while count * FACTOR < MAX_EPISODES:
        found = test.trace(np.ones(count, np.bool_)) >= test.log_bound
        if found.any():
            return max(MIN_EPISODES, FACTOR * (int(found.argmax()) + 1))
        count *= 2
    return MAX_EPISODES


def _parts(
    criteria: CompletionCriteria, scenario: Scenario, cells: Sequence[Cell]
) -> Iterator[tuple[Cell | None, Scenario]]:
    """The whole mix, or the scenario of each cell where each must pass."""
    if not criteria.every_cell:
        yield None, scenario
        return
    for cell in cells:
        levels = len(scenario.difficulty.get(cell.target, ()))
        only = tuple(float(level == cell.difficulty) for level in range(1, levels + 1))
        difficulty = {cell.target: only} if levels else {}
        yield cell, Scenario({cell.target: 1.0}, difficulty, scenario.parameters)


Action = Literal["ignore", "rehearse", "demote"]
MIN_FLOOR = 0.05  # below it, there is nothing to lose
AFTER: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("lost", "ignore"): "",
        ("lost", "rehearse"): "; it is rehearsed until it is back",
        ("lost", "demote"): "; back to that lesson",
        ("back", "ignore"): "",
        ("back", "rehearse"): "; its rehearsal ends",
    }
)
"""What is said of the action, by kind and action."""


@dataclass(frozen=True)
class Regression:
    """A cell of an earlier lesson was lost, or is back; its win rate is that of the last `window`.

    That is the window whose interval speaks most for it, and holds at 95 % for having been looked
    at after every episode (`evidence`).
    """

    kind: Literal["lost", "back"]
    target: str
    difficulty: int
    lesson: int  # whose pass is meant, from 0
    floor: float
    episodes: int  # since the question was asked
    window: int
    win_rate: float
    lower: float
    upper: float
    log_evidence: float
    log_bound: float
    action: Action  # what is done, or ends

    @property
    def demotes(self) -> bool:
        """Whether the curriculum goes back to the lost cell's lesson."""
        return self.kind == "lost" and self.action == "demote"

    @property
    def line(self) -> str:
        """The regression as a person reads it."""
        name = Cell(self.target, self.difficulty).shown
        rate = f"win rate {shown_rate(self.win_rate, self.lower, self.upper)}"
        since = f"over its last {self.window} episodes, floor {percent(self.floor)} from lesson"
        after = AFTER.get((self.kind, self.action), "")
        return f"{name} is {self.kind}: {rate} {since} {self.lesson + 1}{after}"


class ForgettingMonitor:
    """The cells that are watched, over all lessons."""

    def __init__(self, settings: ForgettingSettings, lessons: Sequence[Lesson]) -> None:
        self._settings = settings
        self._lessons = lessons
        self._watches: list[_Watch] = []
        self._questions = 0
        self._demoted: set[int] = set()  # lessons that were gone back to
        self.begin_lesson(0)

    @property
    def margin(self) -> float:
        """How far a win rate may fall below what was passed."""
        return self._settings.margin

    def begin_lesson(self, lesson: int) -> None:
        """Watch what can be seen in `lesson`: cells passed under the same parameters."""
        self._lesson = lesson
        now = self._lessons[lesson].parameters
        self._in_sight = {
            watch.cell: watch
            for watch in self._watches
            if self._lessons[watch.lesson].parameters == now
        }

    def take(self, floors: Mapping[Cell, float]) -> None:
        """The present lesson was passed; from now on no win rate may fall below `floors`."""
        for cell, floor in floors.items():
            held = self._in_sight.get(cell)
            if floor < MIN_FLOOR or (held is not None and held.floor >= floor):
                continue
            if held is not None:
                self._watches.remove(held)
            self._watches.append(_Watch(cell, self._lesson, floor, self._next_alpha()))
            self._in_sight[cell] = self._watches[-1]

    def _next_alpha(self) -> float:
        self._questions += 1
        return self._settings.alpha / (self._questions * (self._questions + 1))

    @property
    def cells(self) -> Mapping[Cell, object]:
        """The cells that are watched now."""
        return self._in_sight

    def shares(self, mix: Sequence[Cell]) -> dict[Cell, float]:
        """Shares of the episodes for cells that `mix` lacks and for those that are rehearsed."""
        rehearsed = [cell for cell, watch in self._in_sight.items() if watch.rehearsed]
        unseen = [cell for cell in self._in_sight if cell not in mix and cell not in rehearsed]
        shares = dict.fromkeys(rehearsed, self._settings.rehearsal_share / max(len(rehearsed), 1))
        if self._settings.watch_share > 0:
            share = self._settings.watch_share / max(len(unseen), 1)
            shares |= dict.fromkeys(unseen, share)
        return shares

    def count(self, outcome: Outcome) -> Regression | None:
        """What an episode reveals about its cell, mostly nothing."""
        watch = self._in_sight.get(outcome.cell) if outcome.cell is not None else None
        if watch is None or not watch.count(outcome.won):
            return None
        action = watch.action if watch.lost else self._action(watch)
        regression = watch.report(action)
        if action == "demote":
            self._demoted.add(watch.lesson)
            self._watches.remove(watch)
            del self._in_sight[watch.cell]
        else:
            watch.turn(action, self._next_alpha())
        return regression

    def _action(self, watch: "_Watch") -> Action:
        wanted = self._settings.on_forgetting
        if wanted == "demote" and (watch.lesson >= self._lesson or watch.lesson in self._demoted):
            return "rehearse"
        return wanted

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "lesson": self._lesson,
            "questions": self._questions,
            "demoted": sorted(self._demoted),
            "watches": [watch.state() for watch in self._watches],
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave for the same lessons."""
        self._questions, self._demoted = state["questions"], set(state["demoted"])
        self._watches = [_Watch.resumed(kept) for kept in state["watches"]]
        self.begin_lesson(state["lesson"])


class _Watch:
    """One cell: whether it is still above its floor, or, once it was lost, above it again."""

    def __init__(self, cell: Cell, lesson: int, floor: float, alpha: float) -> None:
        self.cell, self.lesson, self.floor = cell, lesson, floor
        self.lost = False
        self.action: Action = "ignore"
        self._ask(alpha)

    def _ask(self, alpha: float) -> None:
        self._test = EvidenceTest(self.floor if self.lost else 1 - self.floor, alpha)
        self._evidence = self._test.start()
        self._windows = WinRateWindows()

    @property
    def rehearsed(self) -> bool:
        return self.lost and self.action == "rehearse"

    def count(self, won: bool) -> bool:
        """Whether this episode settles the question."""
        self._windows.count(None, won=won)
        self._evidence = self._test.fold(self._evidence, won if self.lost else not won)
        return self._log_evidence >= self._test.log_bound

    @property
    def _log_evidence(self) -> float:
        return float(self._test.log_evidence(self._evidence))

    def turn(self, action: Action, alpha: float) -> None:
        """Ask the opposite question."""
        self.lost, self.action = not self.lost, action
        self._ask(alpha)

    def report(self, action: Action) -> Regression:
        of = self._windows.highest if self.lost else self._windows.lowest
        ((window, _, rate),) = of((ALL_CELLS,))
        return Regression(
            kind="back" if self.lost else "lost",
            target=self.cell.target,
            difficulty=self.cell.difficulty,
            lesson=self.lesson,
            floor=self.floor,
            episodes=self._evidence.episodes,
            window=window,
            win_rate=rate.win_rate or 0.0,
            lower=rate.lower,
            upper=rate.upper,
            log_evidence=self._log_evidence,
            log_bound=self._test.log_bound,
            action=action,
        )

    def state(self) -> dict[str, Any]:
        return {
            "cell": list(self.cell),
            "lesson": self.lesson,
            "floor": self.floor,
            "lost": self.lost,
            "action": self.action,
            "alpha": self._test.alpha,
            "log_wealth": self._evidence.log_wealth.tolist(),
            "episodes": self._evidence.episodes,
            "windows": self._windows.state(),
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any]) -> "_Watch":
        watch = cls(Cell(*state["cell"]), state["lesson"], state["floor"], state["alpha"])
        watch.lost, watch.action = state["lost"], state["action"]
        watch._ask(state["alpha"])
        watch._evidence = Evidence(np.array(state["log_wealth"], np.float64), state["episodes"])
        watch._windows.resume(state["windows"])
        return watch

"""Watching on what earlier lessons passed, and saying when it is lost.

Each cell that was passed has a floor: what was passed, less a margin. Against "the win rate never
fell below the floor" the same bettor plays as for a promotion, on losses: its wealth reaches
1/alpha with a chance of at most alpha, ever. The n-th question that a run asks, from 1, has
alpha / (n (n + 1)); these sum to alpha, so that is the chance of any false report in a whole run.
A cell that was lost is asked whether it is back above its floor, in the same way, before it is
watched again: neither can follow from luck, so nothing flips back and forth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.curriculum.evidence import Evidence, EvidenceTest
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.curriculum.win_rate_windows import ALL_CELLS, WinRateWindows
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.shown_text import shown_rate

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
    at after every episode (`win_rate_windows`).
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
        since = f"over its last {self.window} episodes, floor {self.floor:.3g} from lesson"
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
        self._in_sight = {watch.cell: watch for watch in self._watches if self._sees(watch)}

    def _sees(self, watch: "_Watch") -> bool:
        passed, now = self._lessons[watch.lesson], self._lessons[self._lesson]
        return passed.parameters == now.parameters

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

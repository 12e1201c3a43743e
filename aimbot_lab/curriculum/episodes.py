"""Episodes as a lesson counts them: read from columns, released in the order of their beginnings.

Those that can't be counted are told by reason. Wins end sooner than losses, so among the episodes
that have ended shortly after a start wins are far too many: each episode waits until all that
began before it have ended.
"""

import math
from collections.abc import Container, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Literal, NamedTuple

from aimbot_lab.foundation.episodes import DRAW, UNCOUNTED, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.seeds import derive_seed

Order = Literal["beginnings", "ends"]  # in which episodes count


class Outcome(NamedTuple):
    """A finished episode of a lesson or of a cell that is watched."""

    won: bool
    cell: Cell | None  # None where none is known
    reward: float | None = None  # sum of its rewards; None where a game did not say
    counts: bool = True  # for the lesson; False: watched only
    drawn: bool = False
    rating: float | None = None  # the learner's running rating after it; None: it has none

    @property
    def score(self) -> float:
        """1 where it was won, 0.5 where it was drawn, else 0."""
        return 0.5 if self.drawn else float(self.won)

    def as_json(self) -> list[Any]:
        """Plain values, which `from_json` reads."""
        cell = None if self.cell is None else list(self.cell)
        more: list[Any] = [1] if self.drawn else []
        if self.rating is not None:
            more = [int(self.drawn), self.rating]
        return [int(self.won), cell, self.reward, int(self.counts), *more]

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> "Outcome":
        """What `as_json` gave."""
        won, cell, reward, counts, *more = values
        known = None if cell is None else Cell(*cell)
        drawn, rating = bool(more and more[0]), more[1] if len(more) > 1 else None
        return cls(bool(won), known, reward, bool(counts), drawn, rating)


MAX_REASONS = 20
OTHER_REASONS = "other reasons"
SEEDS = 2**32


class Reader:
    """Reads the episodes of one lesson after another; of several agents a row, the first one's.

    Where a cell is drawn more often than the lesson's mix says, only the due share of its episodes
    counts for the lesson; which ones, follows from their rank alone.
    """

    def __init__(self) -> None:
        self.unparsed: dict[str, int] = {}
        self._shares: dict[int, dict[Cell, float]] = {}

    def begin_lesson(self) -> None:
        """Count all episodes of the scenarios to come."""
        self._shares = {}

    def count_shares(self, scenario: int, shares: Mapping[Cell, float]) -> None:
        """Of each cell of `shares`, count that share of the episodes of `scenario`."""
        if shares:
            self._shares[scenario] = dict(shares)

    def read(
        self,
        batch: EpisodeBatch,
        *,
        first: int | None,
        known: Sequence[Cell],
        watched: Container[Cell],
        cell_required: bool,
        reward_required: bool,
    ) -> list[Outcome | None]:
        """The outcome of each episode, None where it does not count or can't be counted.

        The lesson's are those of scenario `first` and later ones; `known` are its cells, and
        `watched` those of earlier ones. What can't be counted is never a loss: `cell_required`
        says whether an episode must be of one of the lesson's cells, `reward_required` whether it
        must carry a return.
        """
        for reason in batch.unread:
            self._count_unread(reason)
        outcomes: list[Outcome | None] = []
        results = zip(batch.cell, batch.outcome.tolist(), batch.returns.tolist(), strict=True)
        begun = zip(batch.scenario.tolist(), batch.order.tolist(), strict=True)
        for agent, (scenario, rank), (cell, result, total) in zip(
            batch.agent.tolist(), begun, results, strict=True
        ):
            # One trial a row: what one agent wins the others may have lost.
            if agent > 0 or scenario == UNCOUNTED:
                outcomes.append(None)
                continue
            is_present = first is not None and scenario >= first
            place, counts = counted_as(cell, known, watched) if is_present else (None, True)
            reason = ""
            if reward_required and math.isnan(total):
                reason = "carries no return, which the lesson is measured by"
            elif is_present and place is None and cell_required:
                reason = "names no target and difficulty of the lesson's mix"
            if reason:
                self._count_unread(reason)
                outcomes.append(None)
                continue
            reward = None if math.isnan(total) else total
            outcome = Outcome(result == WIN, place, reward, counts, result == DRAW)
            outcomes.append(self._thinned(outcome, scenario, rank))
        return outcomes

    def _count_unread(self, reason: str) -> None:
        if reason not in self.unparsed and len(self.unparsed) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.unparsed[reason] = self.unparsed.get(reason, 0) + 1

    def _thinned(self, outcome: Outcome, scenario: int, rank: int) -> Outcome:
        shares = self._shares.get(scenario)
        if shares is None or outcome.cell not in shares:
            return outcome
        if derive_seed(rank, "rehearsal") < shares[outcome.cell] * SEEDS:
            return outcome
        return outcome._replace(counts=False)

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        shares = [
            [scenario, [[*cell, share] for cell, share in of.items()]]
            for scenario, of in self._shares.items()
        ]
        return {"unparsed": dict(self.unparsed), "shares": shares}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.unparsed = dict(state["unparsed"])
        self._shares = {
            scenario: {Cell(target, level): share for target, level, share in of}
            for scenario, of in state["shares"]
        }


def counted_as(
    cell: Cell | None, known: Sequence[Cell], watched: Container[Cell]
) -> tuple[Cell | None, bool]:
    """The cell that an episode of `cell` counts for, and whether for the lesson, not only watched.

    The lesson's cells are `known`. With one cell only, an episode that names none is that cell's.
    """
    if cell in known:
        return cell, True
    if cell is not None and cell in watched:
        return cell, False
    return known[0] if cell is None and len(known) == 1 else None, True


class StartOrder:
    """Releases the outcomes of a lesson in the order in which their episodes began.

    The lesson's episodes are those of scenario `first` and of all later ones: a world numbers its
    scenarios upwards, and a lesson whose mix is changed goes on under further numbers.
    """

    def __init__(self, first: int | None = None) -> None:
        self.first = first
        self._waiting: list[tuple[int, Outcome]] = []

    def begin(self, first: int | None) -> None:
        """Forget all that waits; from now on episodes from scenario `first` on count."""
        self.first = first
        self._waiting = []

    def add(self, batch: EpisodeBatch, outcomes: Sequence[Outcome | None]) -> list[Outcome]:
        """The outcomes that `batch` released; `outcomes` has one for each of its episodes.

        An episode of an earlier scenario, and one whose outcome is None, is dropped; neither
        keeps others waiting.
        """
        if not batch or self.first is None:
            return []
        for rank, scenario, outcome in zip(
            batch.order.tolist(), batch.scenario.tolist(), outcomes, strict=True
        ):
            if scenario >= self.first and outcome is not None:
                heappush(self._waiting, (rank, outcome))
        running = batch.running_order[batch.running_scenario >= self.first]
        oldest_running = int(running.min()) if running.size else None
        released = []
        while self._waiting and (oldest_running is None or self._waiting[0][0] < oldest_running):
            released.append(heappop(self._waiting)[1])
        return released

    @property
    def waiting(self) -> list[tuple[int, Outcome]]:
        """What waits, by rank; to be stored and given to `resume`."""
        return sorted(self._waiting, key=lambda entry: entry[0])

    def resume(self, first: int | None, waiting: Sequence[tuple[int, Outcome]]) -> None:
        """Go on from a stored state."""
        self.first = first
        self._waiting = list(waiting)
        heapify(self._waiting)

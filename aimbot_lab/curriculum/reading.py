"""Episodes read as a lesson needs them; those that can't be counted are, by reason."""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Outcome
from aimbot_lab.foundation.episodes import DRAW, UNCOUNTED, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.seeds import derive_seed

MAX_REASONS = 20
OTHER_REASONS = "other reasons"
SEEDS = 2**32


class Reading(NamedTuple):
    """How the episodes of a lesson are read."""

    cells: Sequence[Cell]  # of the lesson
    watched: Container[Cell] = ()  # of earlier ones
    cell_required: bool = False  # whether an episode must be of one of them
    reward_required: bool = False


def read_outcome(
    cell: Cell | None, *, won: bool, reward: float | None, reading: Reading, drawn: bool = False
) -> Outcome | str:
    """What an episode is to a lesson, or why it can't be counted, which is never a loss.

    With one cell only, an episode that names no target is that cell's.
    """
    if reward is None and reading.reward_required:
        return "carries no return, which the lesson is measured by"
    if cell in reading.cells:
        return Outcome(won, cell, reward, drawn=drawn)
    if cell is not None and cell in reading.watched:
        return Outcome(won, cell, reward, counts=False, drawn=drawn)
    if cell is None and len(reading.cells) == 1:
        return Outcome(won, reading.cells[0], reward, drawn=drawn)
    if reading.cell_required:
        return "names no target and difficulty of the lesson's mix"
    return Outcome(won, None, reward, drawn=drawn)


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
        criteria: CompletionCriteria | None,
    ) -> list[Outcome | None]:
        """The outcome of each episode, None where it does not count or can't be counted.

        The lesson's are those of scenario `first` and later ones; `known` are its cells.
        """
        by_reward = criteria is not None and criteria.measured.of_rewards
        every_cell = criteria is not None and criteria.every_cell
        present = Reading(known, watched, every_cell, by_reward)
        earlier = Reading((), (), cell_required=False, reward_required=by_reward)
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
            reading = present if first is not None and scenario >= first else earlier
            reward = None if math.isnan(total) else total
            won, drawn = result == WIN, result == DRAW
            outcome = read_outcome(cell, won=won, reward=reward, reading=reading, drawn=drawn)
            if isinstance(outcome, str):
                self._count_unread(outcome)
                outcomes.append(None)
            else:
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

"""Result lines read as a lesson needs them; those that can't be read are counted by reason."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Outcome, Reading, read_outcome
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import UnparsedLineError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Cell

MAX_REASONS = 20
OTHER_REASONS = "other reasons"
SEEDS = 2**32


class Reader:
    """Reads the lines of one lesson after another.

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
        """The outcome of each episode, None where its line carries none.

        The lesson's are those of scenario `first` and later ones; `known` are its cells.
        """
        by_reward = criteria is not None and criteria.measure == "reward"
        every_cell = criteria is not None and criteria.every_cell
        present = Reading(known, watched, every_cell, by_reward)
        earlier = Reading((), (), cell_required=False, reward_required=by_reward)
        outcomes = []
        triples = zip(batch.lines, batch.scenario.tolist(), batch.order.tolist(), strict=True)
        for line, scenario, rank in triples:
            reading = present if first is not None and scenario >= first else earlier
            outcome = self._outcome(line, reading)
            outcomes.append(outcome and self._thinned(outcome, scenario, rank))
        return outcomes

    def _outcome(self, line: str, reading: Reading) -> Outcome | None:
        try:
            return read_outcome(line, reading)
        except UnparsedLineError as error:
            reason = str(error)
        if reason not in self.unparsed and len(self.unparsed) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.unparsed[reason] = self.unparsed.get(reason, 0) + 1
        return None

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

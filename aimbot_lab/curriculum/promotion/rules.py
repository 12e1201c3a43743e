"""How a lesson finds out that it is passed: the rules by name.

A rule is fed the lesson's episodes one by one and, after each step of the world, one look.
`order` says in which order it wants them: as they began, or as they end.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from aimbot_lab.curriculum.criteria import CompletionCriteria
from aimbot_lab.curriculum.outcomes import Order, Outcome
from aimbot_lab.curriculum.promotion.evidence_rule import EvidenceRule
from aimbot_lab.curriculum.promotion.ml_agents_rule import MlAgentsMemory, MlAgentsRule
from aimbot_lab.curriculum.promotion.progress_rule import ProgressRule
from aimbot_lab.foundation.episodes import Cell


class Rule(Protocol):
    """The open question whether a lesson is passed."""

    order: Order
    every_step: bool  # whether each step of the world is a check, not only each episode

    @property
    def episodes(self) -> int:
        """How many it has counted."""
        ...

    @property
    def statistic(self) -> float:
        """What is compared with `bound`; NaN as long as there is nothing to compare."""
        ...

    @property
    def bound(self) -> float:
        """What the statistic must reach (evidence) or exceed (all else)."""
        ...

    @property
    def passed(self) -> bool:
        """Whether the lesson is passed at this very moment."""
        ...

    def count(self, outcome: Outcome) -> None:
        """Take one more episode."""
        ...

    def look(self, share: float) -> None:
        """A step of the world is over; `share` of all training steps are taken."""
        ...

    def lacks(self, cell: Cell) -> bool:
        """Whether `cell` has not passed; where all are judged together, whether these have not."""
        ...

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now."""
        ...

    def tally(self) -> dict[str, Any]:
        """What only reports need, and nothing that is learned depends on, as plain JSON values."""
        ...

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave; empty: it is not known."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        ...

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        ...


NewRule = Callable[[CompletionCriteria, Sequence[Cell], MlAgentsMemory], Rule]

RULES: Mapping[tuple[str, str], NewRule] = MappingProxyType(
    {
        ("evidence", "win_rate"): lambda criteria, cells, _: EvidenceRule(criteria, cells),
        ("evidence", "reward"): lambda criteria, cells, _: EvidenceRule(criteria, cells),
        ("evidence", "progress"): lambda criteria, _, __: ProgressRule(criteria),
        ("evidence", "score"): lambda criteria, cells, _: EvidenceRule(criteria, cells),
        ("evidence", "elo"): lambda criteria, cells, _: EvidenceRule(criteria, cells),
        ("ml-agents", "win_rate"): lambda criteria, _, memory: MlAgentsRule(criteria, memory),
        ("ml-agents", "reward"): lambda criteria, _, memory: MlAgentsRule(criteria, memory),
        ("ml-agents", "progress"): lambda criteria, _, memory: MlAgentsRule(criteria, memory),
        ("ml-agents", "score"): lambda criteria, _, memory: MlAgentsRule(criteria, memory),
        ("ml-agents", "elo"): lambda criteria, _, memory: MlAgentsRule(criteria, memory),
    }
)
"""By rule and measure: what makes the rule of a lesson."""


def new_rule(
    criteria: CompletionCriteria, cells: Sequence[Cell], *, memory: MlAgentsMemory
) -> Rule:
    """The rule that `criteria` ask for, before the first episode."""
    return RULES[criteria.rule, criteria.measure](criteria, cells, memory)

"""What sweeps optimise: the measures by name, and how they differ.

`search.measures` has what each of them does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A measure that `objective.measure` names."""

    name: str
    pruners: frozenset[str]  # which can prune its trials, besides none
    maximizes: bool = True  # whether a greater value is better
    trains: bool = True  # whether agents are trained; if not, scores are made up
    counts_steps: bool = False  # until the last lesson passes


WIN_RATE = Objective(name="win_rate", pruners=frozenset({"wilcoxon", "halving"}))
STEPS_TO_GOAL = Objective(
    name="steps_to_goal",
    pruners=frozenset({"halving", "race"}),
    maximizes=False,
    counts_steps=True,
)
PLANTED = Objective(name="planted", pruners=frozenset({"wilcoxon"}), trains=False)
OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {one.name: one for one in (WIN_RATE, STEPS_TO_GOAL, PLANTED)}
)


def pruner_faults(measure: str, pruner: str) -> Iterator[str]:
    """Why that pruner can't prune trials of that measure."""
    if pruner == "none" or pruner in OBJECTIVES[measure].pruners:
        return
    suited = [one.name for one in OBJECTIVES.values() if pruner in one.pruners]
    if len(suited) == 1:
        yield f"must not be {pruner} unless objective.measure is {suited[0]}"
    else:
        yield f"must not be {pruner} where objective.measure is {measure}"

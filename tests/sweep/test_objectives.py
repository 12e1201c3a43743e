"""What sweeps optimise are entries of a table: settings name exactly those that there are."""

from typing import get_args, get_type_hints

import pytest

from aimbot_lab.sweep.settings import OBJECTIVES, ObjectiveSettings, PrunerSettings, pruner_faults
from aimbot_lab.sweep.trial import MEASURES


def test_settings_name_the_measures_and_pruners_that_there_are() -> None:
    measures = get_args(get_type_hints(ObjectiveSettings)["measure"])
    assert set(measures) == set(OBJECTIVES) == set(MEASURES)
    pruners = get_args(get_type_hints(PrunerSettings)["kind"])
    assert {name for one in OBJECTIVES.values() for name in one.pruners} == {*pruners} - {"none"}


@pytest.mark.parametrize(
    ("measure", "pruner", "faults"),
    [
        ("planted", "halving", ["must not be halving where objective.measure is planted"]),
        (
            "steps_to_goal",
            "wilcoxon",
            ["must not be wilcoxon where objective.measure is steps_to_goal"],
        ),
        ("win_rate", "race", ["must not be race unless objective.measure is steps_to_goal"]),
        ("planted", "race", ["must not be race unless objective.measure is steps_to_goal"]),
        *((measure, "none", []) for measure in OBJECTIVES),
        ("win_rate", "halving", []),
        ("steps_to_goal", "race", []),
    ],
)
def test_a_pruner_that_does_not_suit_the_measure_is_refused(
    measure: str, pruner: str, faults: list[str]
) -> None:
    assert list(pruner_faults(measure, pruner)) == faults

"""What sweeps optimise, whether a gain is real, and the time that is left."""

from math import pi, tan
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from sweep_files import MEASURED_STEPS

from aimbot_lab.foundation.episodes import student_interval
from aimbot_lab.sweep.report import Pace, found_share, gain_over
from aimbot_lab.sweep.settings import OBJECTIVES, ObjectiveSettings, PrunerSettings, pruner_faults


def test_settings_name_the_measures_and_pruners_that_there_are() -> None:
    measures = get_args(get_type_hints(ObjectiveSettings)["measure"])
    assert set(measures) == set(OBJECTIVES)
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
        *((measure, "none", []) for measure in OBJECTIVES),
    ],
)
def test_a_pruner_that_does_not_suit_the_measure_is_refused(
    measure: str, pruner: str, faults: list[str]
) -> None:
    assert list(pruner_faults(measure, pruner)) == faults


# As sweeps/rewards.yaml confirms: the best two and values of its own, each with the defaults.
ROOT = Path(__file__).parents[2]
CONFIRM = yaml.safe_load((ROOT / "sweeps" / "rewards.yaml").read_text(encoding="utf-8"))["confirm"]
SHIPPED = {
    "seeds": CONFIRM["seeds"],
    "comparisons": CONFIRM["best"] + len(CONFIRM["also"]),
    "limit": 2_000_000,
}


def test_the_interval_of_two_values_is_cauchys() -> None:
    # t with one degree of freedom: its 97.5 % quantile is tan(0.475 pi).
    _, lower, upper = student_interval([1.0, 2.0])
    assert lower is not None
    assert upper is not None
    assert (lower + upper) / 2 == pytest.approx(1.5)
    assert upper - lower == pytest.approx(tan(0.475 * pi))


def test_a_gain_is_that_of_pairs() -> None:
    """What both trainings on a seed have in common falls out."""
    gain = gain_over([10.0, 110.0, 1010.0], [9.0, 109.0, 1009.3], comparisons=3)
    assert gain.mean == pytest.approx(0.9)
    whole = student_interval([1.0, 1.0, 0.7], comparisons=3)
    assert gain == pytest.approx(whole)
    assert gain_over([2.0], [5.0], comparisons=1).lower is None


@pytest.mark.parametrize("count", [1, 8])
def test_values_that_are_all_alike_have_no_interval(count: int) -> None:
    assert student_interval([0.1 + 0.2, 0.3] * count)[1:] == (None, None)
    assert gain_over([0.9] * count, [0.2] * count, comparisons=1).lower is None
    assert found_share([1e5], 2.0, seeds=max(count, 2), comparisons=1, rounds=9) == 0.0


@pytest.mark.parametrize("factor", [0.9, 1.1, 2.5])
def test_a_planted_difference_is_found_nine_times_in_ten(factor: float) -> None:
    """By values that take 0.9, 1.1 or 2.5 times the steps, the last mostly cut by the budget."""
    assert found_share(MEASURED_STEPS, factor, **SHIPPED) >= 0.9


def test_a_difference_that_is_not_there_is_hardly_ever_found() -> None:
    assert found_share(MEASURED_STEPS, 1.0, rounds=2000, **SHIPPED) <= 0.05 / 3 + 0.007
    alone = {**SHIPPED, "comparisons": 1}
    assert found_share(MEASURED_STEPS, 1.0, rounds=2000, **alone) <= 0.05 + 0.01


def test_fewer_seeds_find_less() -> None:
    shares = [
        found_share(MEASURED_STEPS, 1.15, **{**SHIPPED, "seeds": seeds}) for seeds in (3, 8, 16)
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.2


@pytest.mark.parametrize(
    ("stage", "total", "course", "left"),
    [
        # Workers start and compile for a minute; then a trial takes ten seconds.
        ("search", 10, [(1, 0, 0), (60, 0, 0), (61, 0, 0.1), (65, 0, 0.5)], [None, None, 99, 95]),
        ("search", 10, [(60, 0, 0), (61, 0, 0.1), (80, 2, 0)], [None, 99, 80]),
        # What was done before this process does not count.
        ("search", 10, [(5, 4, 0), (15, 5, 0)], [None, 50]),
        # A trial that begins again is no progress.
        ("search", 10, [(1, 0, 0.4), (2, 0, 0), (12, 0, 1)], [None, None, 90]),
        # The last trial is still at work, and nothing is left of it.
        ("search", 2, [(1, 0, 0), (11, 1, 1)], [None, 0]),
        # A confirmation counts its own trials.
        ("confirm", 4, [(1, 0, 0), (11, 1, 0)], [None, 30]),
    ],
)
def test_the_time_left_is_that_of_trials_at_the_pace_since_the_first_progress(
    stage: str, total: int, course: list[tuple[float, int, float]], left: list[float | None]
) -> None:
    """At each moment: seconds, ended trials, share of one at work."""
    clock = iter([0.0, *(moment for moment, _, _ in course)])
    pace = Pace(lambda: next(clock))
    for (_, ended, share), wanted in zip(course, left, strict=True):
        searched = {"status": "searching", "ended": ended, "total": total}
        confirmed = {"status": "confirming", "confirm_ended": ended, "to_confirm": total}
        report: Any = SimpleNamespace(
            **(searched if stage == "search" else {**confirmed, "ended": 8, "total": 8})
        )
        found = pace.seconds_left(report, {(stage, ended): share})  # type: ignore[dict-item]
        assert found == (wanted if wanted is None else pytest.approx(wanted))

"""The harness of benchmarks: turns, ratios, and tables from documents."""

import math

import pytest

from aimbot_lab.bench.turns import Table, by_turns, mean_ratio, turns


def test_every_other_turn_goes_backwards() -> None:
    called: list[str] = []
    variants = {name: lambda name=name: called.append(name) or len(called) for name in "ab"}
    found = by_turns(variants, 3, say=called.append, warm_up=True)
    assert called == [
        *("a", "b", "repeat 1 of 3: 2 variants", "a", "b"),
        *("repeat 2 of 3: 2 variants", "b", "a", "repeat 3 of 3: 2 variants", "a", "b"),
    ]
    assert found == {"a": [4, 8, 10], "b": [5, 7, 11]}
    assert list(turns("ab", 2, alternate=False)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_a_mean_ratio_is_geometric_and_its_interval_is_student_s() -> None:
    assert mean_ratio([0.5, 2.0])["mean"] == pytest.approx(1.0)
    assert mean_ratio([3.0])["mean"] == pytest.approx(3.0)
    assert math.isnan(mean_ratio([3.0])["lower"])
    found = [*mean_ratio([math.exp(k) for k in (1.0, 2.0, 3.0)]).values()]
    half = 4.302653 / math.sqrt(3.0)  # t of 2 degrees, times the deviation 1
    assert found == pytest.approx([math.exp(2.0), math.exp(2.0 - half), math.exp(2.0 + half)])


def test_ratios_turned_round_have_the_interval_turned_round() -> None:
    ratios = [1.1, 1.4, 1.3, 0.9]
    mean, lower, upper = mean_ratio(1.0 / one for one in ratios).values()
    assert [1.0 / mean, 1.0 / upper, 1.0 / lower] == pytest.approx([*mean_ratio(ratios).values()])


def test_a_table_has_the_values_of_the_document_under_their_keys() -> None:
    row = {
        "name": "memory",
        "steps_per_second": 12345.6,
        "shares": {"update": 0.5},
        "ratio": {"mean": 1.5, "lower": 1.25, "upper": 1.75},
        "steps": {"median": None, "lowest": 3, "highest": None},
        "milliseconds": {"tree": 0.01},
        "seeds": 1000,
        "passed": True,
        "products": None,
    }
    assert Table("title", [row]).cells() == [
        {
            "name": "memory",
            "steps per second": "12,346",
            "update": "50.0%",
            "ratio": "1.50 [1.25, 1.75]",
            "steps": "never [3, never]",
            "milliseconds, tree": "0.01",
            "seeds": "1,000",
            "passed": "yes",
            "products": "-",
        }
    ]

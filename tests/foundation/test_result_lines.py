"""Result lines are written from episodes and read back from a game."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aimbot_lab.foundation.episodes import (
    DRAW,
    LOSS,
    WIN,
    Cell,
    EpisodeBatch,
    UnparsedLineError,
    parse_result,
    result_line,
)

CELLS = st.builds(Cell, st.sampled_from(["goto", "free"]), st.integers(0, 5))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
EPISODES = st.tuples(CELLS, st.sampled_from([WIN, DRAW, LOSS]), NUMBERS)


def batch(episodes: list[tuple[Cell, int, float]], **columns: float) -> EpisodeBatch:
    count = len(episodes)
    numbers = np.arange(count)
    return EpisodeBatch(
        row=numbers,
        agent=np.zeros_like(numbers),
        order=numbers,
        scenario=np.ones_like(numbers),
        cell=tuple(cell for cell, _, _ in episodes),
        outcome=np.array([outcome for _, outcome, _ in episodes], np.int8),
        length=np.ones_like(numbers),
        terms=np.array([[total] for _, _, total in episodes]).reshape(count, 1),
        running_order=numbers + count,
        running_scenario=np.ones_like(numbers),
        columns={name: np.full(count, value) for name, value in columns.items()},
    )


def test_a_worlds_own_columns_follow_in_the_line() -> None:
    ended = batch([(Cell("goto", 2), DRAW, 1.0)], seconds=3.0, treasures=4.0)
    assert result_line(ended, 0) == (
        "Warning|Result|Draw|target=goto|difficulty=2|seconds=3.0|return=1.0|treasures=4.0"
    )


GORGE = ("steps", "bumps", "treasures", "placed", "score", "optimum")


def test_columns_that_a_world_names_stand_before_the_return_as_the_shortest_text() -> None:
    numbers = dict(zip(GORGE, (212.0, 3.0, 5.0, 5.0, 1007.6, 1019.2), strict=True))
    ended = batch([(Cell("collect", 4), WIN, 1007.6)], **numbers, arrived=1.0)
    assert result_line(ended, 0, GORGE) == (
        "Warning|Result|Win|target=collect|difficulty=4|steps=212|bumps=3|treasures=5|placed=5"
        "|score=1007.6|optimum=1019.2|return=1007.6"
    )
    ended = batch([(Cell("score", 0), LOSS, 150.0)], **numbers)
    line = result_line(ended, 0, GORGE)
    assert line.startswith("Warning|Result|Lose|target=score|steps=212|")
    assert line.endswith("|return=150")


@given(st.lists(EPISODES, max_size=5), st.tuples(*[NUMBERS] * len(GORGE)))
def test_lines_give_the_columns_back(
    episodes: list[tuple[Cell, int, float]], values: tuple[float, ...]
) -> None:
    numbers = dict(zip(GORGE, values, strict=True))
    ended = batch(episodes, **numbers, seconds=2.5)
    for place, (cell, outcome, total) in enumerate(episodes):
        named = parse_result(result_line(ended, place, GORGE), GORGE)
        plain = parse_result(result_line(ended, place))
        for read in (named, plain):
            assert (read.cell, read.outcome, read.episode_return) == (cell, outcome, total)
        assert (named.columns, plain.seconds) == (numbers, 2.5)


def test_columns_may_be_missing_in_a_line_and_must_be_finite() -> None:
    assert parse_result("Warning|Result|Win|steps=7", GORGE).columns == {"steps": 7.0}
    bare = parse_result("Warning|Result|Win", GORGE)
    assert (bare.cell, bare.episode_return, bare.columns) == (None, None, {})
    assert parse_result("Warning|Result|Win|score=inf").columns == {}  # nobody asked for it
    with pytest.raises(UnparsedLineError, match="score=inf is not finite"):
        parse_result("Warning|Result|Win|score=inf", GORGE)
    with pytest.raises(UnparsedLineError, match="bumps=many is not a number"):
        parse_result("Warning|Result|Win|bumps=many", GORGE)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Loss of signal", "not a result line"),
        ("Warning|Command", "a command where a result was due"),
        ("Warning|Result|Gone", "is none of Win, Lose and Draw"),
        ("Warning|Result|Win|seconds=long", "is not a number"),
        ("Warning|Result|Win|difficulty=1.5", "is not a whole number"),
        ("Warning|Result|Win|seconds", "is not key=value"),
        ("Warning|Result|Win|return=1|return=2", "is given twice"),
        ("Warning|Result|Win|return=nan", "is not finite"),
    ],
)
def test_a_damaged_line_is_never_a_loss(line: str, reason: str) -> None:
    with pytest.raises(UnparsedLineError, match=reason):
        parse_result(line)

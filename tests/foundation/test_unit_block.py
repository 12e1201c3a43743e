"""Units of an observation: a view of its columns, and what is wrong with one that does not fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.world import UnitBlock, unit_faults

BLOCK = UnitBlock(
    kind="foes",
    features=("seen", "ahead", "right"),
    columns=np.array([[0, 2, 3], [1, 4, 5]]),
    fixed=np.zeros((2, 0), np.float32),
    seen="seen",
    place=("ahead", "right"),
    target=True,
)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"columns": np.array([[0, 2], [1, 4]])}, "foes: columns must be [slots, 3 features]"),
    ({"columns": np.zeros((0, 3), np.int64)}, "foes: columns must be [slots, 3 features]"),
    ({"columns": BLOCK.columns + 1}, "every column must be one of the observation's, 0 to 5"),
    ({"fixed": np.zeros((3, 1), np.float32)}, "fixed must have a row for each of 2 slots"),
    ({"distance": "far"}, "there is no feature 'far'"),
    ({"labels": {"tag": (0.0, 1.0)}}, "there is no feature 'tag'"),
    ({"place_scale": 0.0}, "place_scale must be above 0 (got 0)"),
    ({"seen": None}, "a target needs a feature that says it is seen, and a place"),
    ({"place": None}, "a target needs a feature that says it is seen, and a place"),
]


def test_a_block_views_the_columns_of_an_observation() -> None:
    observations = np.arange(12.0).reshape(2, 6)
    units = observations[:, BLOCK.columns]
    assert units.shape == (2, BLOCK.slots, 3)
    np.testing.assert_array_equal(units[..., 1], observations[:, BLOCK.column_of("ahead")])
    assert units[1, 1].tolist() == [7.0, 10.0, 11.0]


def test_a_block_that_fits_has_no_fault() -> None:
    assert list(unit_faults(BLOCK, 6)) == []


@pytest.mark.parametrize(("changed", "what"), WRONG)
def test_a_block_that_does_not_fit_says_why_in_a_line(changed: dict[str, Any], what: str) -> None:
    (fault,) = unit_faults(replace(BLOCK, **changed), 6)
    assert what in fault


def test_anything_else_is_no_block() -> None:
    assert list(unit_faults("foes", 6)) == ["units: each must be a UnitBlock"]

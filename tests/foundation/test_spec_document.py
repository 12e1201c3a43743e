"""Specs as documents, and blocks of units."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import (
    EnvironmentActions,
    ObservationBlock,
    StateTable,
    UnitBlock,
    WorldSpec,
    table_of_one_hot,
    unit_faults,
)
from aimbot_lab.worlds.registry import WORLDS
from tests.worlds.race import Race

POLE = WORLDS["gymnasium"].spec(
    WORLDS["gymnasium"].settings(id="CartPole-v1", win={"length_above": 50})
)
PICTURE = replace(
    POLE,
    blocks=(ObservationBlock("screen", "image", (96, 96, 3)),),
    observation_names=(),
    observation_low=np.zeros(0, np.float32),
    observation_high=np.zeros(0, np.float32),
)
AIMING = replace(
    POLE,
    branches=(3, 2),
    continuous=2,
    continuous_bounds=((-np.inf, 0.5), (-2.0, np.inf)),
    action_names=("move", "jump", "yaw", "pitch"),
    abilities=frozenset({"masks", "paired"}),
    result_columns=(),
    states=table_of_one_hot(4),
    environment_actions=EnvironmentActions(
        "box", (2, 2), "float64", starts=(5, -1), low=(-1e-3, -np.inf), high=(0.1, 5000.0)
    ),
)
MOVE = EnvironmentActions("discrete", (), "int64", starts=(5,))
AIM = EnvironmentActions("box", (1, 2), "float32", low=(-1.0, -np.inf), high=(1.0, 2.0))
WHOLE = EnvironmentActions(
    "box", (2, 2), "int64", starts=(5, -1), low=(0, -(2**63)), high=(2**53 + 1, 2**63 - 1)
)
PARTS = EnvironmentActions.joined([MOVE, AIM, MOVE], ("move", 7, "jump"))
NESTED = EnvironmentActions.joined([MOVE, EnvironmentActions.joined([MOVE, AIM], None)], None)


def same(one: object, other: object) -> bool:
    if isinstance(one, StateTable) and isinstance(other, StateTable):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize(
    "spec",
    [
        *(POLE, PICTURE, AIMING, Race(4).spec),
        *(replace(AIMING, environment_actions=actions) for actions in (WHOLE, PARTS, NESTED)),
    ],
    ids=["pole", "picture", "aiming", "race", "whole", "parts", "nested"],
)
def test_a_spec_comes_back_from_its_document(spec: WorldSpec) -> None:
    spec = replace(spec, blocks=spec.observation_blocks, units=(), measures=())
    read = spec_from(json.loads(json.dumps(spec_document(spec), allow_nan=False)))
    names = [one.name for one in fields(spec)]
    differing = [name for name in names if not same(getattr(read, name), getattr(spec, name))]
    assert differing == []


@pytest.mark.parametrize(
    "given",
    [
        {"dtype": "object"},
        {"dtype": "no such"},
        {"shape": [3, 2]},
        {"shape": [-2, -2]},
        {"dtype": "int8", "low": [0, 10**30]},
        {"low": [0.0]},
        {"starts": None},
        {"dtype": "int8", "low": [0, None]},
        {"kind": "sphere"},
        {"kind": "tuple", "parts": [{"kind": "box"}]},
    ],
)
def test_actions_that_no_environment_takes_are_refused(given: dict[str, object]) -> None:
    document = json.loads(json.dumps(spec_document(AIMING)))
    document["environment_actions"] |= given
    with pytest.raises((ValueError, TypeError, KeyError, OverflowError)):
        spec_from(document)


def test_a_picture_takes_few_bytes_and_one_without_pixels_is_none() -> None:
    text = json.dumps(spec_document(PICTURE))
    assert len(text) < 2000
    document = json.loads(text)
    document["blocks"][0][2][0] = 0
    with pytest.raises(ValueError, match="another shape than its kind"):
        spec_from(document)


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


@pytest.mark.parametrize(("changed", "what"), WRONG)
def test_a_block_that_does_not_fit_says_why_in_a_line(changed: dict[str, Any], what: str) -> None:
    (fault,) = unit_faults(replace(BLOCK, **changed), 6)
    assert what in fault
    assert list(unit_faults("foes", 6)) == ["units: each must be a UnitBlock"]
    assert list(unit_faults(BLOCK, 6)) == []

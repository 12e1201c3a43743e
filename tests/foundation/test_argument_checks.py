"""What a step is given is checked alike by every world, in one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import (
    FLOAT32,
    MisuseError,
    action_fault,
    check_writable,
    checked_actions,
    checked_row,
    whole_seed,
)
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import BatchWorld, Scenario, step_buffers
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.registry import default_settings, make_world

ROWS = 3
NAN, INFINITE = float("nan"), float("inf")
CARTPOLE = GymnasiumSettings(id="CartPole-v1", win=WinRule(length_above=9), num_envs=ROWS)
Make = Callable[[], BatchWorld]


def world_of(settings: Any, target: str) -> BatchWorld:
    world = make_world(settings, ROWS)
    world.set_scenario(Scenario({target: 1.0}))
    world.reset(1, step_buffers(world).observations)
    return world


WORLDS_HERE = [
    pytest.param(lambda: world_of(default_settings(), "goto"), id="arena"),
    pytest.param(lambda: world_of(GorgeSettings(), "walk"), id="gorge"),
    pytest.param(lambda: world_of(CARTPOLE, "task"), id="gymnasium"),
]


@pytest.mark.parametrize("make", WORLDS_HERE)
def test_no_array_of_real_numbers_as_actions_and_buffers_of_another_form_are_refused(
    make: Make,
) -> None:
    world, wrong = make(), list[Any]()
    width, right = len(world.spec.branches) + world.spec.continuous, step_buffers(world)
    wrong += [np.full((ROWS, width), "x"), np.zeros((ROWS, width), np.complex128)]
    wrong += [[[0] * width] * ROWS, np.zeros((ROWS + 1, width), np.float32)]
    for actions in wrong:
        with pytest.raises(ActionError, match=r"^actions: (must be an array|the shape is)"):
            world.step(actions, right)
    buffers: Any
    for buffers, name in (
        (tuple(right), "buffers: must be StepBuffers"),
        (right._replace(rewards=np.zeros(ROWS)), "rewards: must be"),
        (right._replace(truncated=np.zeros(ROWS + 1, np.bool_)), "truncated: must be"),
    ):
        with pytest.raises(MisuseError, match=f"^{name}"):
            world.step(np.zeros((ROWS, width), np.float32), buffers)


READ_ONLY = np.zeros((ROWS, 5), np.float32)
READ_ONLY.setflags(write=False)
UNFIT: dict[str, Any] = {
    "too narrow": np.zeros((ROWS, 4), np.float32),
    "too few rows": np.zeros((ROWS - 1, 5), np.float32),
    "flat": np.zeros(ROWS * 5, np.float32),
    "whole numbers": np.zeros((ROWS, 5), np.int64),
    "doubles": np.zeros((ROWS, 5)),
    "other byte order": np.zeros((ROWS, 5), ">f4"),
    "read only": READ_ONLY,
    "every other column": np.zeros((ROWS, 10), np.float32)[:, ::2],
    "columns first": np.zeros((ROWS, 5), np.float32, order="F"),
    "masked": np.ma.zeros((ROWS, 5), np.float32),
    "no array": [[0.0] * 5] * ROWS,
}


@pytest.mark.parametrize("case", UNFIT)
def test_an_array_that_no_kernel_can_fill_is_refused(case: str) -> None:
    with pytest.raises(MisuseError, match=r"^seen: .*\(3, 5\) and type float32 \(got [^\n]+\)$"):
        check_writable(UNFIT[case], "seen", shape=(ROWS, 5), dtype=FLOAT32)


def test_seeds_and_rows_are_whole_numbers() -> None:
    for kind in (int, np.int64, np.uint8, np.array):
        assert (whole_seed(kind(2)), checked_row(kind(2), ROWS)) == (2, 2)
    for wrong in (2.0, True, np.True_, np.float64(2.0), "2", None):
        with pytest.raises(MisuseError, match=r"^seed: must be a whole number"):
            whole_seed(wrong)
    for wrong in (ROWS, -1, 1.5, True, "0"):
        with pytest.raises(MisuseError, match=r"^row: must be a whole number from 0 to 2"):
            checked_row(wrong, ROWS)


@pytest.mark.parametrize(
    ("value", "column", "line"),
    [
        (3.0, 0, "environment 1: {} is 3; allowed is one of 0, 1, 2"),
        (0.5, 1, "environment 1: {} is 0.5; allowed is one of 0, 1, 2"),
        (NAN, 2, "environment 1: {} is nan; allowed is one of 0, 1"),
        (INFINITE, 3, "environment 1: {} is inf; allowed is any finite number"),
    ],
)
def test_the_first_action_that_does_not_exist_is_named(
    value: float, column: int, line: str
) -> None:
    spec = world_of(default_settings(), "goto").spec
    actions = np.zeros((ROWS, 4))
    np.testing.assert_array_equal(checked_actions(actions, ROWS, spec=spec), actions)
    actions[1, column] = value
    with pytest.raises(ActionError) as refused:
        checked_actions(actions, ROWS, spec=spec)
    assert str(refused.value) == line.format(spec.action_names[column])


def test_of_many_choices_the_last_is_named_and_of_continuous_columns_the_wrong_one() -> None:
    for actions, line in (
        (np.float32([9, 0, 0]), "environment 4: a is 9; allowed is one of 0 to 8"),
        (np.float32([8, 0, NAN]), "environment 4: y is nan; allowed is any finite number"),
    ):
        assert action_fault(actions, 4, names=("a", "x", "y"), branches=(9,)) == line

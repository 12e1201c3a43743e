"""Rows that are edited: what tests of the editor share."""

import numpy as np
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor

STAYING = Scenario({"stay": 1.0})
ATTACK_BLOCK, GOTO_BLOCK = ("attack", "pair"), ("goto", "lone crate")
MIDDLE = 9  # ray


def edited(scenario: Scenario = STAYING, **settings) -> tuple[Stage, RowEditor]:
    """An arena of Stay with the agent of row 0 at (2, 2), looking north."""
    stage = new_stage(scenario, 1, **{"num_envs": 1, **settings})
    stage.arena.keep_endings = True
    return stage, RowEditor(stage.arena)


def columns(stage: Stage) -> dict[str, float]:
    names = stage.arena.spec.observation_names
    return dict(zip(names, stage.buffers.observations[0].tolist(), strict=True))


def same_arrays(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def block(editor: RowEditor, at: tuple[float, float], **turns) -> int:
    return editor.place_block(0, at, preset=GOTO_BLOCK, **turns)

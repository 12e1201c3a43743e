"""Rows are edited between steps: what is placed is there, what can't be is refused in a line."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from arena_stage import new_stage
from scene_stage import ATTACK_BLOCK, GOTO_BLOCK, block, columns, edited, same_arrays

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import result_line
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core.state import TARGET
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor


@pytest.mark.parametrize("turns", range(4))
def test_a_placed_block_stands_as_a_drawn_one_of_its_preset_place_and_turn(turns: int) -> None:
    drawn = new_stage(Scenario({"attack": 1.0, "goto": 1.0}), turns, num_envs=40)
    state = drawn.arena.state
    row = int(np.flatnonzero(state.block_turns == turns)[0])
    preset = drawn.arena.presets[state.preset[row]]
    stage, editor = edited()
    at = (state.block[row, 0] + 5.0, state.block[row, 1] + 5.0)
    editor.place_block(0, at, preset=(preset.target, preset.name), turns=turns)
    editor.assign(0, preset.target)
    mine = stage.arena.state
    for name in ("obstacles", "enemies", "fire_base", "block"):
        there = getattr(state, name)[row]
        np.testing.assert_allclose(getattr(mine, name)[0][: len(there)], there, atol=1e-12)
    for name in ("preset", "block_turns", "difficulty", "target", "obstacle_count"):
        assert getattr(mine, name)[0] == getattr(state, name)[row], name


def test_an_assigned_target_is_observed_and_its_clock_begins_anew() -> None:
    stage, editor = edited()
    for _ in range(12):
        stage.repeat(1, 0, 1, 0.5)
    editor.place_block(0, (30.0, 30.0), preset=GOTO_BLOCK)
    stage.repeat(0, 0, 0, 0)
    editor.assign(0, "goto")
    editor.observe(0, stage.buffers.observations)
    seen = columns(stage)
    assert (seen["target"], seen["time_left"], seen["gun_ready"]) == (TARGET.goto, 30.0, 1.0)
    assert (seen["fire_base_x"], seen["fire_base_z"], seen["fire_base_diameter"]) == (30, 30, 6)
    assert not stage.arena.state.terms.any()
    assert not stage.arena.state.spin_turns.any()
    editor.assign(0, "stay")
    editor.observe(0, stage.buffers.observations)
    seen = columns(stage)
    assert [seen[name] for name in ("target", "fire_base_x", "fire_base_diameter")] == [
        TARGET.stay,
        0,
        0,
    ]


def test_a_won_target_gives_a_result_and_the_floor_carries_on_in_stay() -> None:
    stage, editor = edited()
    block = editor.place_block(0, (2.0 + 5.5, 20.0), preset=("attack", "sentry"))
    editor.place_enemy(0, (40.0, 40.0))
    editor.assign(0, "attack", block=block)
    state = stage.arena.state
    away = state.enemies[0, 0] - state.position[0]
    editor.place_agent(0, (2.0, 2.0), yaw=math.atan2(*away))
    batch = stage.repeat(0, 0, 1, 0)
    assert result_line(batch, 0).startswith("Warning|Result|Win|target=attack|difficulty=1|")
    editor.carry_on(0)
    state = stage.arena.state
    assert state.target[0] == TARGET.stay
    assert state.enemy_hits_left[0, :2].tolist() == [0, 1]
    (left,) = editor.record(0).blocks
    assert stage.arena.presets[left.preset].name == "sentry"
    with pytest.raises(MisuseError, match="every enemy of block 0 is down"):
        editor.assign(0, "attack")
    stage.repeat(0, 0, 0, 0)
    with pytest.raises(MisuseError, match="no ending of it in the last step"):
        editor.carry_on(0)


def test_what_is_removed_is_gone_and_all_else_stays() -> None:
    stage, editor = edited()
    editor.place_enemy(0, (40.0, 5.0))
    editor.place_block(0, (15.0, 15.0), preset=("goto", "two crates"))
    before = editor.floor(0)
    gone = editor.place_block(0, (30.0, 15.0), preset=ATTACK_BLOCK)
    last = editor.place_enemy(0, (40.0, 30.0))
    editor.assign(0, "attack")
    with pytest.raises(MisuseError, match="belongs to block 1: remove the block"):
        editor.remove_enemy(0, 1)
    editor.remove_enemy(0, last)
    editor.remove_block(0, gone)
    assert stage.arena.state.target[0] == TARGET.stay
    after = editor.floor(0)
    np.testing.assert_array_equal(after.obstacles, before.obstacles)
    np.testing.assert_array_equal(after.enemies["enemies"], before.enemies["enemies"])
    assert after.record.blocks == before.record.blocks
    assert after.record.owners == before.record.owners
    editor.assign(0, "goto")
    editor.remove_enemy(0, 0)
    assert stage.arena.state.target[0] == TARGET.goto, "the target's block still stands"


REFUSED: dict[str, tuple[str, Callable[[RowEditor], object]]] = {
    "outside": ("outside the floor", lambda e: e.place_enemy(0, (46.6, 20.0))),
    "over an enemy": ("over an enemy", lambda e: e.place_enemy(0, (40.0, 40.5))),
    "in an obstacle": ("over an obstacle", lambda e: e.place_enemy(0, (21.5, 23.4))),
    "block at the wall": ("nearer than 1.5 m", lambda e: block(e, (40.6, 10.0))),
    "block over a block": ("over another block", lambda e: block(e, (30.0, 20.0))),
    "block over an enemy": ("over an enemy", lambda e: block(e, (38.0, 36.0))),
    "no such preset": (
        "has none of target",
        lambda e: e.place_block(0, (9, 30), preset=("a", "b")),
    ),
    "half a turn": ("turns: ", lambda e: block(e, (9.0, 30.0), turns=0.5)),
    "no number": ("finite", lambda e: e.place_enemy(0, (math.nan, 3.0))),
    "one number": ("two numbers", lambda e: e.place_enemy(0, (3.0,))),
    "no such row": ("^row: ", lambda e: e.place_enemy(1, (9.0, 30.0))),
    "no such target": ("target: must be one", lambda e: e.assign(0, "defence")),
    "no such block": ("no such number", lambda e: e.assign(0, "goto", block=3)),
    "another target's": ("a block of goto", lambda e: e.assign(0, "attack", block=0)),
    "stay has no block": ("about no block", lambda e: e.assign(0, "stay", block=0)),
    "no such enemy": ("no such number", lambda e: e.remove_enemy(0, 5)),
    "agent in a wall": ("over an obstacle", lambda e: e.place_agent(0, (21.5, 23.0), yaw=0.0)),
    "a narrow buffer": ("observations", lambda e: e.observe(0, np.zeros((1, 4), np.float32))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_in_a_line_and_changes_nothing(case: str) -> None:
    words, edit = REFUSED[case]
    stage, editor = edited()
    editor.place_block(0, (25.0, 20.0), preset=GOTO_BLOCK)
    editor.place_enemy(0, (40.0, 40.0))
    before = stage.arena.snapshot()
    with pytest.raises(MisuseError, match=words) as error:
        edit(editor)
    assert "\n" not in str(error.value)
    same_arrays(before, stage.arena.snapshot())


def test_a_place_is_refused_beforehand_exactly_where_placing_raises() -> None:
    _, editor = edited()
    editor.place_block(0, (25.0, 20.0), preset=ATTACK_BLOCK)
    random = np.random.default_rng(0)
    refused = 0
    for at in random.uniform(-2.0, 49.0, (300, 2)).tolist():
        for fault_of, place, given in (
            (editor.enemy_fault, editor.place_enemy, {}),
            (editor.block_fault, editor.place_block, {"preset": GOTO_BLOCK}),
        ):
            if fault_of(0, at, **given) is None:
                place(0, at, **given)
                continue
            refused += 1
            with pytest.raises(MisuseError, match="can be placed at"):
                place(0, at, **given)
    assert 100 < refused < 600


def test_a_row_is_full_at_last() -> None:
    stage, editor = edited(Scenario({"stay": 1.0}), floor_size=1000.0)
    for k in range(106):
        editor.place_enemy(0, (10.0 + 3 * k, 40.0))
    with pytest.raises(MisuseError, match="a row holds 106 enemies at most"):
        editor.place_enemy(0, (10.0, 60.0))
    assert editor.block_fault(0, (500.0, 500.0), preset=ATTACK_BLOCK) is not None
    stage.repeat(0, 0, 1, 0)

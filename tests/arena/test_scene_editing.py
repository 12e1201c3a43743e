"""Rows are edited between steps: what is placed is there, what can't be is refused in a line.

And laws: rows, threads, snapshots, what others see of it.
"""

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from arena_stage import (
    ALL_TARGETS,
    ATTACK_BLOCK,
    GOTO_BLOCK,
    block,
    edited,
    new_stage,
    random_play,
    row_digests,
    same_arrays,
)

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import result_line
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.core.state import TARGET
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor


def test_a_won_target_gives_a_result_and_the_floor_carries_on_in_stay() -> None:
    stage, editor = edited()
    block = editor.place_block(0, (2.0 + 5.5, 20.0), preset=("attack", "sentry"))
    editor.place_enemy(0, (40.0, 40.0))
    editor.assign(0, "attack", block=block)
    with pytest.raises(MisuseError, match="belongs to block 0: remove the block"):
        editor.remove_enemy(0, 0)
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


REFUSED: dict[str, tuple[str, Callable[[RowEditor], object]]] = {
    "outside": ("outside the floor", lambda e: e.place_enemy(0, (46.6, 20.0))),
    "over an enemy": ("over an enemy", lambda e: e.place_enemy(0, (40.0, 40.5))),
    "in an obstacle": ("over an obstacle", lambda e: e.place_enemy(0, (21.5, 23.4))),
    "block at the wall": ("nearer than 1.5 m", lambda e: block(e, (40.6, 10.0))),
    "block over a block": ("over another block", lambda e: block(e, (30.0, 20.0))),
    "block over an enemy": ("over an enemy", lambda e: block(e, (38.0, 36.0))),
    "no preset": ("has none of target", lambda e: e.place_block(0, (9, 30), preset=("a", "b"))),
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


def edit_somehow(editor: RowEditor, row: int, random: np.random.Generator) -> None:
    """One random edit, or none where it is refused."""
    at = tuple(random.uniform(0.0, 47.0, 2).tolist())
    preset = editor.arena.presets[int(random.integers(len(editor.arena.presets)))]
    key, turns = (preset.target, preset.name), int(random.integers(4))
    record = editor.record(row)
    edits: list[Callable[[], object]] = [
        lambda: editor.place_enemy(row, at),
        lambda: editor.place_block(row, at, preset=key, turns=turns),
        lambda: editor.assign(row, str(random.choice(["goto", "attack", "free", "stay"]))),
        lambda: editor.remove_block(row, int(random.integers(max(len(record.blocks), 1)))),
        lambda: editor.remove_enemy(row, int(random.integers(max(len(record.owners), 1)))),
        lambda: editor.clear(row),
        lambda: editor.place_agent(row, at, yaw=float(random.uniform(-9, 9))),
        lambda: editor.restore_floor(row, editor.floor(row)),
    ]
    share = np.array([5, 5, 5, 1, 1, 0.3, 2, 1])
    with suppress(MisuseError):
        edits[int(random.choice(len(edits), p=share / share.sum()))]()


def edited_play(rows: int, *, threads: int = 1, rounds: int = 25, **settings) -> list[str]:
    """A digest for each row of a play in which every row is edited by its own dice."""
    stage = new_stage(ALL_TARGETS, 5, num_envs=rows, threads=threads, time_limit=2.0, **settings)
    editor = RowEditor(stage.arena)
    dice = [np.random.default_rng((9, row)) for row in range(rows)]
    parts: list[list[str]] = [[] for _ in range(rows)]
    for number in range(rounds):
        for row in range(rows):
            for _ in range(3):
                edit_somehow(editor, row, dice[row])
            editor.observe(row, stage.buffers.observations)
            parts[row].append(stage.buffers.observations[row].tobytes().hex())
        for row, digest in enumerate(row_digests(stage, random_play(6, rows, seed=number))):
            parts[row].append(digest)
    return ["".join(part) for part in parts]


def test_edited_rows_go_the_same_way_whatever_the_rows_and_threads() -> None:
    few = edited_play(3)
    assert edited_play(3) == few
    assert edited_play(140, threads=2)[:3] == few
    assert edited_play(2, stacked_vectors=3) == edited_play(2, stacked_vectors=3)


def test_a_snapshot_holds_what_was_placed_and_goes_on_bit_for_bit() -> None:
    stage = new_stage(ALL_TARGETS, 2, num_envs=4, time_limit=3.0)
    editor, random = RowEditor(stage.arena), np.random.default_rng(3)
    for _ in range(60):
        edit_somehow(editor, int(random.integers(4)), random)
    kept = stage.arena.snapshot()
    records = [editor.record(row) for row in range(4)]
    assert sum(len(record.blocks) for record in records) >= 2
    expected = row_digests(stage, random_play(40, 4, seed=1))
    other = new_stage(ALL_TARGETS, 8, num_envs=4, time_limit=3.0)
    other.arena.restore(kept)
    same_arrays(kept, other.arena.snapshot())
    assert [RowEditor(other.arena).record(row) for row in range(4)] == records
    assert row_digests(other, random_play(40, 4, seed=1)) == expected
    stage.arena.restore(kept)
    assert row_digests(stage, random_play(40, 4, seed=1)) == expected


def test_a_snapshot_whose_records_do_not_fit_its_floor_is_refused() -> None:
    stage, editor = edited()
    block(editor, (25.0, 20.0))
    kept = stage.arena.snapshot()
    for column, value in ((0, 7), (1, 99), (3, 999), (6, 4), (3, math.nan)):
        wrong = {**kept, "scene_blocks": kept["scene_blocks"].copy()}
        wrong["scene_blocks"][0, column] = value
        with pytest.raises(MisuseError, match="scene_blocks"):
            stage.arena.restore(wrong)
    with pytest.raises(MisuseError, match="scene_owners"):
        stage.arena.restore({name: kept[name] for name in kept if name != "scene_owners"})
    same_arrays(kept, stage.arena.snapshot())


def test_a_floor_is_put_back_unless_the_agent_is_in_the_way() -> None:
    stage, editor = edited()
    editor.place_block(0, (25.0, 20.0), preset=GOTO_BLOCK)
    editor.assign(0, "goto")
    floor = editor.floor(0)
    editor.clear(0)
    editor.restore_floor(0, floor)
    again = editor.floor(0)
    np.testing.assert_array_equal(again.obstacles, floor.obstacles)
    assert stage.arena.state.target[0] == TARGET.goto
    editor.clear(0)
    box = floor.obstacles[0]
    editor.place_agent(0, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), yaw=0.0)
    with pytest.raises(MisuseError, match="the agent is there"):
        editor.restore_floor(0, floor)
    assert stage.arena.state.obstacle_count[0] == 0

"""Scenes as files: written, read again, refused, and taken as target blocks."""

import numpy as np
import pytest
from arena_stage import new_stage, same_arrays

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import Placement
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.arena.presets import load_presets
from aimbot_lab.worlds.arena.scenes.files import ArenaEditor, read_scene, scene_of
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import type_of

PAIR = "attack 1"


@pytest.fixture
def editor() -> ArenaEditor:
    return ArenaEditor(new_stage(Scenario({"stay": 1.0}), num_envs=1).arena)


def place(editor: ArenaEditor, key: str, x: float, z: float, **more: int) -> None:
    editor.place(0, Placement(key, more.pop("variant", 0), x, z, **more))


def test_a_scene_that_is_saved_and_loaded_is_the_same_to_the_last_bit(editor: ArenaEditor) -> None:
    place(editor, PAIR, 20.123456789, 33.3, variant=1, turns=3)
    place(editor, "goto 3", 35.0, 10.1, turns=1)
    place(editor, "enemy", 5.5, 41.25)
    place(editor, "enemy", 20.1, 33.3)
    editor.place_agent(0, (3.3, 4.4), yaw=2.5)
    other = ArenaEditor(new_stage(Scenario({"stay": 1.0}), 7, num_envs=1).arena)
    other.load(0, editor.text(0, "mine"))
    assert other.text(0, "mine") == editor.text(0, "mine")
    for name in ("obstacles", "enemy_hits_left", "enemy_is_target", "fire_base", "target"):
        mine, there = (getattr(one.arena.state, name) for one in (editor, other))
        np.testing.assert_array_equal(mine, there, err_msg=name)
    np.testing.assert_allclose(editor.arena.state.yaw, other.arena.state.yaw, atol=1e-12)
    first, second = (one.arena.state.enemies[0] for one in (editor, other))
    assert sorted(map(tuple, first.tolist())) == sorted(map(tuple, second.tolist()))


def test_a_scene_of_one_block_and_no_other_is_a_preset_with_the_enemies_in_its_fire_base(
    editor: ArenaEditor, tmp_path
) -> None:
    place(editor, PAIR, 20.0, 20.0, variant=1, turns=1)
    place(editor, "enemy", 21.5, 21.5)
    place(editor, "enemy", 40.0, 40.0)
    file = tmp_path / "yard.yaml"
    file.write_text(editor.text(0, "yard"))
    (preset,) = load_presets([file])
    assert (preset.name, preset.target, preset.difficulty) == ("yard", "attack", 1)
    assert len(preset.enemies) == 3
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, presets=(str(file),))
    ArenaEditor(stage.arena).place_block(0, (20.0, 20.0), preset=("attack", "yard"), turns=1)
    there = sorted(map(tuple, np.round(stage.arena.state.enemies[0, :3], 9).tolist()))
    mine = sorted(map(tuple, np.round(editor.arena.state.enemies[0, :3], 9).tolist()))
    assert there == mine
    place(editor, PAIR, 35.0, 20.0)
    file.write_text(editor.text(0, "two"))
    with pytest.raises(ConfigurationError, match="does not hold one block"):
        load_presets([file])


GOOD = """\
scene:
  agent: {x: 2, z: 2, yaw: 90}
  blocks:
  - {target: goto, name: lone crate, x: 20, z: 20}
  enemies: [[30, 30]]
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("scene", "scenes", "scene.yaml:1:1: the file: unknown key 'scenes'"),
        ("yaw: 90", "yaw: .nan", "scene.yaml:2:28: agent: yaw: must be a finite number"),
        ("goto,", "free,", "scene.yaml:4:14: blocks: number 1: target: must be one of goto"),
        ("z: 20", "z: 20, turns: 4", "turns: must be a whole number from 0 to 3 (got '4')"),
        ("enemies", "target: defence\n  enemies", "scene.yaml:5:11: target: must be one of free"),
        (
            "enemies",
            "block: 1\n  enemies",
            "scene.yaml:5:10: block: must be a whole number from 0 to 0",
        ),
    ],
)
def test_faults_of_a_scene_file_have_their_place(
    editor: ArenaEditor, old: str, new: str, fault: str
) -> None:
    before = editor.arena.snapshot()
    with pytest.raises(ConfigurationError) as error:
        editor.load(0, GOOD.replace(old, new, 1))
    assert any(fault in line for line in error.value.faults), error.value.faults
    same_arrays(before, editor.arena.snapshot())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lone crate", "no such", "none of target and name"),
        ("x: 20, z", "x: 2, z", "no block can be placed"),
        ("[[30, 30]]", "[[30, 30], [30, 30.5]]", "over an enemy"),
        ("enemies", "target: attack\n  enemies", "no attack block"),
    ],
)
def test_a_scene_that_does_not_fit_changes_nothing(
    editor: ArenaEditor, old: str, new: str, words: str
) -> None:
    place(editor, PAIR, 30.0, 20.0)
    before = editor.text(0, "before")
    with pytest.raises(MisuseError, match=words):
        editor.load(0, GOOD.replace(old, new, 1))
    assert editor.text(0, "before") == before


def test_a_text_without_a_scene_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"scene\.yaml:1:1: the file holds no scene"):
        read_scene("goto: {}")
    assert read_scene("scene: {}").target == "stay"


def test_the_menu_offers_an_enemy_and_every_kind_of_block(editor: ArenaEditor) -> None:
    first, *labels = (entry.label for entry in editor.menu)
    blocks = {f"{kind} block {level}" for kind in ("Attack", "Goto") for level in range(1, 6)}
    assert (first, len(labels), {*labels}) == ("Enemy", 10, blocks)
    assert [button.label for button in editor.buttons] == ["FreeMode", "StayMode", "ClearGame"]


def test_the_outline_of_the_menu_is_what_is_placed(editor: ArenaEditor) -> None:
    for entry in editor.menu[1:]:
        for variant, outline in enumerate(entry.outlines):
            editor.press(0, "clear")
            place(editor, entry.key, 30.0, 20.0, variant=variant)
            state, shift = editor.arena.state, np.array([30.0, 20.0])
            boxes = np.reshape(outline.boxes, (-1, 4)) + np.tile(shift, 2)
            np.testing.assert_allclose(state.obstacles[0, : len(boxes)], boxes)
            discs = np.reshape(outline.discs, (-1, 3))[:, :2] + shift
            np.testing.assert_allclose(state.enemies[0, : len(discs)], discs)
            assert scene_of(editor, 0).target == entry.key.split()[0], "assigned at once"
            view = type_of(ArenaSettings()).scenes.view(editor.arena, 0)
            assert view.plots == ((25.0, 15.0, 35.0, 25.0),)
            assert view.circle is not None


def test_the_buttons_are_the_modes_of_the_original(editor: ArenaEditor) -> None:
    place(editor, "enemy", 20.0, 20.0)
    assert scene_of(editor, 0).target == "stay", "an enemy assigns nothing"
    editor.press(0, "free")
    assert scene_of(editor, 0).target == "free"
    editor.press(0, "stay")
    assert scene_of(editor, 0).target == "stay"
    assert len(scene_of(editor, 0).enemies) == 1
    place(editor, "goto 5", 30.0, 20.0)
    editor.press(0, "clear")
    assert scene_of(editor, 0)[1:4] == ((), (), "stay")
    editor.press(0, "free")
    assert scene_of(editor, 0).target == "stay", "without enemies"
    with pytest.raises(MisuseError, match="there is no button"):
        editor.press(0, "defence")


def test_a_view_shows_what_stands_and_what_was_shot(editor: ArenaEditor) -> None:
    arena, scenes = editor.arena, type_of(ArenaSettings()).scenes
    buffers = step_buffers(arena)
    place(editor, PAIR, 30.0, 20.0)
    place(editor, "goto 3", 30.0, 35.0)
    place(editor, "enemy", 2.0, 12.0)
    editor.observe(0, buffers.observations)
    before = scenes.view(arena, 0)
    assert (before.x, before.z, before.yaw, before.ready, before.size) == (2, 2, 0, True, 47)
    assert len(before.plots) == 2
    assert before.target == "Goto, difficulty 3"
    assert before.rays[9] == (0.0, 9.5, 1)
    assert len(before.rays) == 19
    action = scenes.action(right=-1, ahead=1, attack=True, mouse=0.0)
    assert action.tolist() == [1, 2, 1, 0]
    shoot = scenes.action(right=0, ahead=0, attack=True, mouse=0.0)
    arena.step(shoot[None], buffers)
    after = scenes.view(arena, 0, before=before, action=shoot)
    assert (after.fired, after.hit, after.ready) == (True, len(after.bodies) - 1, False)
    assert after.bodies[-1].hits_left == 0
    arena.step(shoot[None], buffers)
    again = scenes.view(arena, 0, before=after, action=shoot)
    assert (again.fired, again.hit) == (False, -1)
    assert again.seconds_left == pytest.approx(29.8)

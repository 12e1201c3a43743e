"""Calls that the arena cannot carry out are refused in one line and leave it as it was.

And the largest numbers that settings take keep every promise.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play
from pydantic import ValidationError

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import Preset, load_presets, preset_faults
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings, RewardWeights

ROWS = 8


@pytest.fixture
def stage() -> Stage:
    return new_stage(ALL_TARGETS, 3, num_envs=ROWS, time_limit=2.0)


@contextmanager
def refused(arena: Arena, words: str, kind: type[LabError] = LabError) -> Iterator[None]:
    """Whether the block raises one line with these words and leaves the arena as it was."""
    before = arena.snapshot()
    with pytest.raises(kind, match=words) as error:
        yield
    assert "\n" not in str(error.value)
    for name, array in arena.snapshot().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_without_a_reset_there_are_no_masks_and_without_a_scenario_none_is_set() -> None:
    arena = Arena(ArenaSettings(num_envs=ROWS))
    with refused(arena, "reset first"):
        arena.action_masks(np.zeros((ROWS, 8), np.bool_))
    with refused(arena, r"^scenario: must be a Scenario \(got dict\)"):
        arena.set_scenario({"goto": 1.0})


OTHER_SETTINGS = {
    "num_envs": ({"num_envs": 4}, r"\(8, .*\(4, "),
    "spin_window": ({"spin_window": 20}, "spin_window is 40.*20"),
    "time_limit": ({"time_limit": 3.0}, r"time_limit is 2\.0.*3\.0"),
    "rays": ({"rays": RaySettings(side_count=6)}, "rays.side_count is 7.*6"),
    "tags": ({"rays": RaySettings(tags="one_hot")}, "rays.tags is 'label'.*'one_hot'"),
    "stacked_vectors": ({"stacked_vectors": 2}, "stacked_vectors is 1.*2"),
}


@pytest.mark.parametrize("case", OTHER_SETTINGS)
def test_a_snapshot_of_another_arena_is_refused_by_what_differs(stage: Stage, case: str) -> None:
    settings, words = OTHER_SETTINGS[case]
    other = new_stage(ALL_TARGETS, 1, **{"num_envs": ROWS, "time_limit": 2.0, **settings})
    with refused(other.arena, f"^snapshot: .*{words}"):
        other.arena.restore(stage.arena.snapshot())


def test_other_presets_and_every_damaged_array_of_a_snapshot_are_refused(stage: Stage) -> None:
    kept = stage.arena.snapshot()
    other = Arena(stage.arena.settings, load_presets()[1:])
    with refused(other, "^snapshot: .*presets"):
        other.restore(kept)
    for _ in range(5):
        stage.step(random_play(1, ROWS)[0])
    for name, array in kept.items():
        other_type = np.zeros(array.shape, np.float16)
        for bad in (array[None], other_type, array.tolist(), None):
            with refused(stage.arena, f"^snapshot: .*{name}"):
                stage.arena.restore({**kept, name: bad})
        with refused(stage.arena, f"^snapshot: .*{name}"):
            stage.arena.restore({key: value for key, value in kept.items() if key != name})
    with refused(stage.arena, "^snapshot: .*surplus"):
        stage.arena.restore({**kept, "surplus": np.zeros(1)})


OUT_OF_BOUNDS = {
    "target": 5,
    "difficulty": 6,
    "preset": 10**6,
    "block_turns": 4,
    "obstacle_count": 99,
    "enemy_count": 7,
    "ray_hit": 6,
    "decisions": -1,
    "gun_ticks": -1,
    "episode": 2**63 - 1,
    "parameters": 1e12,
    "scenario_tables.sampler": 4,
    "scenario_tables.sampler_values": np.nan,
    "scenario_tables.sampler_range_count": 99,
    "scenario_tables.bounds": 1e9,
    "scenario_tables.whole": True,
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_a_snapshot_that_would_lead_a_kernel_astray_is_refused(stage: Stage, name: str) -> None:
    """Kernels check no bounds, and a snapshot may come from a file that anyone made."""
    kept = stage.arena.snapshot()
    bad = kept[name].copy()
    middle = bad.size // 4 * 2  # even: constants lie in the first of two columns
    bad.flat[middle] = OUT_OF_BOUNDS[name]
    with refused(stage.arena, f"^snapshot: {name} "):
        stage.arena.restore({**kept, name: bad})
    if name not in ("scenario_tables.bounds", "scenario_tables.whole"):
        lowest = {"preset": -2, "ray_hit": -3}.get(name, -1)
        bad.flat[middle] = lowest if bad.dtype.kind == "i" else -np.inf
        with refused(stage.arena, f"^snapshot: {name} "):
            stage.arena.restore({**kept, name: bad})


OPEN = Preset("open", "attack", 1, (5.0, 5.0, 4.0), (), ((5.0, 5.0),))


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        (replace(OPEN, enemies=((5.0, 5.0),) * 7), "7 enemies"),
        (replace(OPEN, difficulty=7), "difficulty 7"),
        (replace(OPEN, difficulty=1.0), "difficulty"),
        (replace(OPEN, target="free"), "target"),
        (replace(OPEN, fire_base=(5.0, 5.0)), "fire_base"),
        (replace(OPEN, obstacles=((1.0, 1.0, 2.0),)), "obstacles"),
        (replace(OPEN, enemies=(("a", "b"),)), "enemies"),
        (replace(OPEN, enemies=((float("nan"), 1.0),)), "finite"),
    ],
)
def test_presets_given_as_objects_obey_the_rules_too(preset: Preset, words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"preset open: .*{words}"):
        Arena(ArenaSettings(num_envs=1), [preset])


def test_the_faults_of_all_given_presets_come_at_once() -> None:
    wrong = [replace(OPEN, name="far", difficulty=7), OPEN, replace(OPEN, name="bare", enemies=())]
    with pytest.raises(ConfigurationError) as error:
        Arena(ArenaSettings(num_envs=1), [*wrong, "no preset"])
    assert [fault.split(":")[0] for fault in error.value.faults] == [
        "preset far",
        "preset bare",
        "preset 'no preset'",
    ]
    arena = Arena(ArenaSettings(num_envs=1), [OPEN])
    arena.set_scenario(Scenario({"attack": 1.0}, {"attack": (1.0, 0.0, 0.0, 0.0, 0.0)}))


EXTREMES = (
    {"mouse_limit": 1000.0, "mouse_factor": 10.0, "spin_window": 1000, "spin_threshold": 1e6},
    {"gun_cooldown": 3600.0, "fixed_timestep": 0.0001, "gun_range": 10_000.0},
    {"move_speed": 1000.0, "agent_radius": 0.05, "decision_period": 20, "fixed_timestep": 0.1},
    {"spin_rate": 1e6, "facing_distance": 1e6, "goto_win_radius": 1000.0},
    {"rewards": RewardWeights(win=1e9, lose=-1e9, spin_penalty=1e9, distance=-1e9)},
    {"rays": RaySettings(range=10_000.0), "floor_size": 1000.0, "block_gap_to_agent": 100.0},
)


@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
def test_the_largest_numbers_that_settings_take_keep_every_promise(extreme) -> None:
    stage = new_stage(ALL_TARGETS, num_envs=8, **{"time_limit": 200.0, **extreme})
    low, high = stage.arena.spec.observation_low, stage.arena.spec.observation_high
    spins = np.zeros(8)
    for actions in random_play(60, 8):
        actions[:, 3] = np.where(actions[:, 3] > -4, 3e38, -3e38)
        if "mouse_limit" in extreme:
            spins += np.clip(actions[:, 3], -1000, 1000)
            started = stage.arena.state.decisions == 0
            spins[started] = np.clip(actions[started, 3], -1000, 1000)
        stage.step(actions)
        seen = stage.buffers.observations
        assert ((seen >= low) & (seen <= high)).all()  # false for NaN as well
        assert np.isfinite(stage.buffers.rewards).all()
        assert (stage.arena.state.gun_ticks >= 0).all()
    if "mouse_limit" in extreme:
        going = ~stage.buffers.finished
        np.testing.assert_array_equal(stage.arena.state.spin_sum[going] * 2.0**-40, spins[going])


def test_a_single_preset_path_is_no_list_and_path_objects_are_taken() -> None:
    for single in ("mine.yaml", Path("mine.yaml")):
        with pytest.raises(ValidationError, match=r"must be a list .* such as \['mine.yaml'\]"):
            ArenaSettings(presets=single)
    assert ArenaSettings(presets=(Path("mine.yaml"), "b")).presets == ("mine.yaml", "b")


def test_an_enemy_that_is_on_the_rim_but_for_rounding_is_a_target() -> None:
    preset = Preset("nearly", "attack", 1, (5.0, 5.0, 4.0), (), ((7.0 + 5e-10, 5.0),))
    assert preset_faults(preset) == []
    arena = Arena(ArenaSettings(num_envs=256), (preset,))
    arena.set_scenario(Scenario({"attack": 1.0}))
    arena.reset(0, step_buffers(arena).observations)
    assert arena.state.enemy_is_target[:, 0].all()

"""Where episodes begin: every place, turn, preset and kind that the rules allow, and no other."""

from collections import Counter

import numpy as np
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.presets import load_presets

EVERY_DECISION = {"time_limit": 0.1, "num_envs": 200}  # each decision ends every episode


def beginnings(stage: Stage, count: int, names: tuple[str, ...], seed: int = 0) -> list:
    """State arrays at `count` x rows beginnings, the agents at random places before."""
    random, state = np.random.default_rng(seed), stage.arena.state
    seen: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for _ in range(count):
        state.position[:] = random.uniform(0.5, 46.5, state.position.shape)
        stage.repeat(0, 0, 0, 0)
        for name in names:
            seen[name].append(getattr(state, name).copy())
    return [np.concatenate(seen[name]) for name in names]


def test_blocks_stand_in_every_place_and_turn_and_keep_their_gaps() -> None:
    stage = new_stage(Scenario({"attack": 1.0}), **EVERY_DECISION)
    position, corner, turns = beginnings(stage, 60, ("position", "block", "block_turns"))
    assert corner.min() >= 1.5
    assert corner.max() <= 47.0 - 1.5 - 10.0
    nearest = np.clip(position, corner, corner + 10.0)
    assert np.hypot(*(position - nearest).T).min() >= 0.5 + 1.0
    counts = np.bincount(turns, minlength=4)
    assert len(counts) == 4
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=0.02)
    assert len(np.unique(corner, axis=0)) == len(corner)
    share, _, _ = np.histogram2d(*corner.T, bins=3, range=[[1.5, 35.5]] * 2)
    assert share.min() > 0.05 * len(corner)


def test_every_preset_of_every_difficulty_is_met() -> None:
    stage = new_stage(Scenario({"goto": 1.0, "attack": 1.0}), **EVERY_DECISION)
    kinds = beginnings(stage, 60, ("target", "difficulty", "preset"))
    met = Counter(zip(*(kind.tolist() for kind in kinds), strict=True))
    wanted = Counter((preset.target, preset.difficulty) for preset in load_presets())
    names = {1: "goto", 2: "attack"}
    assert Counter((names[target], level) for target, level, _ in met) == wanted
    assert len({preset for _, _, preset in met}) == len(met)
    for (target, level, _), count in met.items():
        share = 0.5 / 5 / wanted[names[target], level]
        assert abs(count - share * 12_000) < 6.0 * np.sqrt(share * 12_000)


def test_targets_and_difficulties_come_by_their_weights() -> None:
    scenario = Scenario(
        {"free": 3.0, "goto": 1.0, "attack": 0.0}, {"goto": (0.0, 1.0, 0.0, 3.0, 0.0)}
    )
    stage = new_stage(scenario, **EVERY_DECISION)
    target, difficulty = beginnings(stage, 60, ("target", "difficulty"))
    assert set(target) == {0, 1}
    assert abs((target == 0).mean() - 0.75) < 0.02
    assert set(difficulty[target == 0]) == {0}
    assert set(difficulty[target == 1]) == {2, 4}
    assert abs((difficulty[target == 1] == 4).mean() - 0.75) < 0.03


def test_free_places_are_anywhere_on_the_floor_and_apart() -> None:
    stage = new_stage(Scenario({"free": 1.0}), **EVERY_DECISION)
    position, enemies, count = beginnings(stage, 40, ("position", "enemies", "enemy_count"))
    assert set(count) == {6}
    discs = np.concatenate([position[:, None], enemies], axis=1)
    assert discs.min() >= 0.5
    assert discs.max() <= 46.5
    gaps = np.hypot(*np.moveaxis(discs[:, :, None] - discs[:, None], -1, 0))
    assert gaps[:, ~np.eye(7, dtype=bool)].min() >= 1.0
    for places in (position, enemies[:, 0], enemies[:, 5]):
        share, _, _ = np.histogram2d(*places.T, bins=3, range=[[0.5, 46.5]] * 2)
        np.testing.assert_allclose(share / len(places), 1 / 9, atol=0.02)


def test_a_reset_with_a_seed_begins_first_episodes_again() -> None:
    stage = new_stage(Scenario({"goto": 1.0}), seed=8, num_envs=20, time_limit=1.0)
    first = stage.buffers.observations.copy()
    for _ in range(25):
        stage.repeat(1, 0, 1, 0.5)
    stage.arena.reset(8, stage.buffers.observations)
    np.testing.assert_array_equal(stage.buffers.observations, first)
    np.testing.assert_array_equal(stage.arena.state.position, 2.0)
    assert not stage.arena.state.yaw.any()

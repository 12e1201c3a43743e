"""Enemies as units of an observation: seen by rays alone, whatever number they have."""

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.foundation.world import Scenario, UnitBlock
from aimbot_lab.worlds.arena.core.state import AT
from aimbot_lab.worlds.arena.core.step import cast_all_rays, observe_all
from aimbot_lab.worlds.arena.settings import ObservationSettings, RaySettings
from aimbot_lab.worlds.registry import spec_of, type_of

UNITS = ObservationSettings(units=True)
CROWD = Scenario(
    {"free": 1.0, "attack": 1.0}, parameters={"free_enemies": 60.0, "bystanders": 20.0}
)
ROWS = 64


def played(seed: int, scenario: Scenario = CROWD, **settings) -> Stage:
    """An arena with units after some play."""
    stage = new_stage(scenario, seed, num_envs=ROWS, observation=UNITS, **settings)
    for actions in random_play(25, ROWS, seed=seed):
        stage.step(actions)
    return stage


def observed(stage: Stage) -> np.ndarray:
    """Observations [B, D] of the present state, rays cast anew."""
    arena = stage.arena
    seen = np.zeros_like(stage.buffers.observations)
    cast_all_rays(arena.state, arena._workspaces[0].scratch, (0, ROWS))
    observe_all(arena.state, arena._tables, seen, (0, ROWS))
    return seen


def block_of(stage: Stage, kind: str = "enemies") -> UnitBlock:
    return next(block for block in stage.arena.spec.units if block.kind == kind)


def enemies_of(stage: Stage, observations: np.ndarray) -> np.ndarray:
    """[B, 6, 5]: seen, ahead, right, share of hits left, is a target."""
    return observations[:, block_of(stage).columns]


def seen_by_rays(stage: Stage, row: int) -> set[int]:
    state, rays = stage.arena.state, stage.arena.settings.rays.count
    near = state.ray_distance[row, :rays] <= np.float32(state.parameters[row, AT.rays_range])
    return {int(hit) for hit in state.ray_hit[row, :rays][near] if hit >= 0}


def test_a_one_hot_target_stands_beside_the_others_columns() -> None:
    codes = (0, 1, 2, 4)  # free, goto, attack, stay
    scenario = Scenario({"free": 1.0, "goto": 1.0, "attack": 1.0, "stay": 1.0})
    kinds = ObservationSettings(units=True, target="one_hot"), UNITS
    shown, plain = (
        new_stage(scenario, 3, num_envs=ROWS, observation=kind, stacked_vectors=2) for kind in kinds
    )
    names = shown.arena.spec.observation_names
    others = [place for place, name in enumerate(names) if not name.startswith("target_")]
    first = names.index("target_free")
    assert shown.arena.spec.blocks[-4].shape == (17,)  # own numbers of the newest observation
    for actions in random_play(10, ROWS, seed=2):
        for stage in (shown, plain):
            stage.step(actions)
        seen, target = shown.buffers.observations, shown.arena.state.target
        assert set(target) == set(codes)
        np.testing.assert_array_equal(
            seen[:, first : first + 4], target[:, None] == np.array(codes)
        )
        np.testing.assert_array_equal(seen[:, others], plain.buffers.observations)


def test_permuting_enemies_in_the_state_changes_no_observation() -> None:
    stage = played(1)
    state, before = stage.arena.state, observed(stage)
    random = np.random.default_rng(0)
    for row in range(ROWS):
        count = int(state.enemy_count[row])
        order = random.permutation(count)
        for array in (state.enemies, state.enemy_hits_left, state.enemy_is_target):
            array[row, :count] = array[row, :count][order]
    np.testing.assert_array_equal(observed(stage), before)
    assert (enemies_of(stage, before)[:, 5, 0] == 1.0).any()  # more than slots were in sight


def test_moving_an_unseen_enemy_where_it_stays_unseen_changes_no_observation() -> None:
    stage = played(2)
    state, random, moved = stage.arena.state, np.random.default_rng(1), 0
    for _ in range(20):
        before, places = observed(stage), state.enemies.copy()
        unseen = np.array([_unseen(stage, row, random) for row in range(ROWS)])
        rows = np.arange(ROWS)
        state.enemies[rows, unseen] = random.uniform(1.0, 46.0, (ROWS, 2))
        after = observed(stage)
        still = np.array([unseen[row] not in seen_by_rays(stage, row) for row in range(ROWS)])
        np.testing.assert_array_equal(after[still], before[still])
        moved += int(still.sum())
        state.enemies[:] = places
    assert moved > 400


def _unseen(stage: Stage, row: int, random: np.random.Generator) -> int:
    state, seen = stage.arena.state, seen_by_rays(stage, row)
    others = [k for k in range(int(state.enemy_count[row])) if k not in seen]
    return int(random.choice(others))


@pytest.mark.parametrize("tags", ["label", "one_hot"])
def test_units_only_add_columns_to_what_is_observed_without_them(tags: str) -> None:
    settings = {"num_envs": 16, "rays": RaySettings(tags=tags), "stacked_vectors": 2}
    plain = new_stage(ALL_TARGETS, 5, **settings)
    shown = new_stage(ALL_TARGETS, 5, observation=UNITS, **settings)
    names = shown.arena.spec.observation_names
    known = [k for k, name in enumerate(names) if not name.startswith("enemy_")]
    assert tuple(names[k] for k in known) == plain.arena.spec.observation_names
    for actions in random_play(40, 16):
        for stage in (plain, shown):
            stage.step(actions)
        np.testing.assert_array_equal(
            shown.buffers.observations[:, known], plain.buffers.observations
        )
    assert len(names) == len(known) + 2 * 30


def test_rays_are_units_by_their_tags_and_distances_whatever_else_is_shown() -> None:
    for settings in ({}, {"observation": UNITS}, {"rays": RaySettings(tags="one_hot")}):
        stage = new_stage(Scenario({"free": 1.0}), 6, num_envs=8, **settings)
        block, names = block_of(stage, "rays"), stage.arena.spec.observation_names
        last = [f"ray_{ray}_distance" for ray in range(19)]
        assert [names[column] for column in block.column_of("distance")] == last
        np.testing.assert_allclose(np.hypot(*block.fixed.T), 1.0, rtol=1e-6)
        assert block.fixed[9].tolist() == [0.0, 1.0]


def test_the_size_of_an_observation_is_known_without_its_names() -> None:
    for settings in ({}, {"observation": UNITS}, {"observation": UNITS, "stacked_vectors": 3}):
        env = new_stage(ALL_TARGETS, 1, num_envs=1, **settings).arena.settings
        assert type_of(env).observation_size(env) == len(spec_of(env).observation_names)

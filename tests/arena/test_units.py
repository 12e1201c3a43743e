"""Enemies as units of an observation: seen by rays alone, whatever number they have."""

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.foundation.world import Scenario, UnitBlock
from aimbot_lab.worlds.arena.settings import ObservationSettings, RaySettings
from aimbot_lab.worlds.registry import spec_of, type_of

UNITS = ObservationSettings(units=True)
ROWS = 64


def block_of(stage: Stage, kind: str = "enemies") -> UnitBlock:
    return next(block for block in stage.arena.spec.units if block.kind == kind)


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

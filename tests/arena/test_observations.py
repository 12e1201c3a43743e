"""What is observed: rays as ML-Agents tells them, enemies and rays as units, one-hot targets."""

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.foundation.world import Scenario, UnitBlock
from aimbot_lab.worlds.arena.settings import ArenaSettings, ObservationSettings, RaySettings
from aimbot_lab.worlds.registry import spec_of, type_of

ROWS, RAYS, KINDS = 64, 19, 5
CROWD = Scenario({"free": 1.0, "attack": 1.0, "goto": 1.0}, parameters={"free_enemies": 40.0})
NEAR = RaySettings(range=12.0)  # so that some rays meet nothing


def middle_first() -> list[int]:
    """Places of rays from left to right, in ML-Agents' order: the middle, right, left ..."""
    right = [[9 + step, 9 - step] for step in range(1, 10)]
    return [9, *(ray for pair in right for ray in pair)]


def test_rays_are_our_own_in_the_layout_of_the_sensor_and_named_by_their_place() -> None:
    given = {"num_envs": ROWS, "rays": NEAR}
    ours = new_stage(CROWD, 3, **given)
    theirs = new_stage(CROWD, 3, observation=ObservationSettings(rays="ml-agents"), **given)
    names = theirs.arena.spec.observation_names[13:]
    assert [int(name.split("_")[1]) for name in names[::KINDS]] == middle_first()
    told = ("wall", "enemy", "player", "nothing", "fraction")
    assert names[:KINDS] == tuple(f"ray_9_{name}" for name in told)
    met = np.zeros(3, np.int64)
    for actions in random_play(40, ROWS, seed=2):
        theirs.step(actions)
        ours.step(actions)
        seen = theirs.buffers.observations[:, 13:].reshape(ROWS, RAYS, KINDS)
        tags = ours.buffers.observations[:, 13 : 13 + RAYS][:, middle_first()]
        distances = ours.buffers.observations[:, 13 + RAYS :][:, middle_first()]
        for kind, tag in enumerate((0.0, 1.0, 2.0, -1.0)):
            np.testing.assert_array_equal(seen[:, :, kind], tags == tag)
        share = np.where(tags == -1.0, 1.0, distances / 12.0).astype(np.float32)
        np.testing.assert_allclose(seen[:, :, 4], share, atol=1e-6)
        np.testing.assert_array_equal(
            theirs.buffers.observations[:, :13], ours.buffers.observations[:, :13]
        )
        met += [(tags == tag).sum() for tag in (0.0, 1.0, -1.0)]
    assert (met > 100).all()


def test_a_fan_can_be_as_even_as_the_sensors() -> None:
    rays = RaySettings(middle_count=3, side_count=2, middle_share=1 / 3, view_angle=140.0)
    steps = np.diff(np.degrees(rays.angles))  # of 3 rays per direction and 70 degrees
    np.testing.assert_allclose(steps, 70.0 / 3.0)


UNITS = ObservationSettings(units=True)


def block_of(stage: Stage, kind: str) -> UnitBlock:
    return next(block for block in stage.arena.spec.units if block.kind == kind)


def test_a_one_hot_target_stands_beside_the_others_columns() -> None:
    codes = (0, 1, 2, 4)  # free, goto, attack, stay
    shown, plain = (
        new_stage(ALL_TARGETS, 3, num_envs=ROWS, observation=kind, stacked_vectors=2)
        for kind in (ObservationSettings(units=True, target="one_hot"), UNITS)
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
        np.testing.assert_array_equal(seen[:, first : first + 4], target[:, None] == codes)
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
        env = ArenaSettings(**settings)
        assert type_of(env).observation_size(env) == len(spec_of(env).observation_names)

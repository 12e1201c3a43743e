"""Rays as ML-Agents tells them: the same as our own, in the order of RayPerceptionSensor."""

import numpy as np
from arena_stage import Stage, new_stage, random_play

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.settings import ObservationSettings, RaySettings

ROWS, RAYS, KINDS = 32, 19, 5
PERCEPTION = ObservationSettings(rays="ml-agents")
CROWD = Scenario({"free": 1.0, "attack": 1.0, "goto": 1.0}, parameters={"free_enemies": 40.0})
NEAR = RaySettings(range=12.0)  # so that some rays meet nothing


def both(**settings) -> tuple[Stage, Stage]:
    """Two arenas that play the same, with rays as ML-Agents tells them and with our own."""
    given = {"num_envs": ROWS, "rays": NEAR, **settings}
    theirs = new_stage(CROWD, 3, observation=PERCEPTION, **given)
    return theirs, new_stage(CROWD, 3, **given)


def middle_first() -> list[int]:
    """Places of rays from left to right, in ML-Agents' order: the middle, right, left ..."""
    right = [[9 + step, 9 - step] for step in range(1, 10)]
    return [9, *(ray for pair in right for ray in pair)]


def test_rays_are_our_own_in_the_layout_of_the_sensor() -> None:
    theirs, ours = both()
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


def test_columns_are_named_by_the_rays_place_from_left_to_right() -> None:
    theirs, _ = both()
    names = theirs.arena.spec.observation_names[13:]
    order = [int(name.split("_")[1]) for name in names[::KINDS]]
    assert order == middle_first()
    assert names[:KINDS] == (
        *("ray_9_wall", "ray_9_enemy", "ray_9_player", "ray_9_nothing"),
        "ray_9_fraction",
    )


def test_a_fan_can_be_as_even_as_the_sensors() -> None:
    rays = RaySettings(middle_count=3, side_count=2, middle_share=1 / 3, view_angle=140.0)
    steps = np.diff(np.degrees(rays.angles))  # of 3 rays per direction and 70 degrees
    np.testing.assert_allclose(steps, 70.0 / 3.0)


def test_earlier_observations_come_first_and_are_zero_before_an_episode() -> None:
    theirs = new_stage(CROWD, 3, num_envs=ROWS, observation=PERCEPTION, stacked_vectors=2)
    before = theirs.buffers.observations.reshape(ROWS, 2, -1).copy()
    assert not before[:, 0].any()
    theirs.step(random_play(1, ROWS)[0])
    now = theirs.buffers.observations.reshape(ROWS, 2, -1)
    np.testing.assert_array_equal(now[:, 0], before[:, 1])

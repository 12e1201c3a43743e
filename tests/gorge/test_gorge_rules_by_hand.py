"""What the specification gives as examples, to the last digit."""

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.registry import as_dict

SEED_COLUMNS = 213


def begun(scenario: Scenario, seed: int = 1, **given: object) -> tuple[Gorge, StepBuffers]:
    """A world that was reset, and its buffers with the first observations."""
    world = Gorge(GorgeSettings(**{"num_envs": 1, **given}))  # type: ignore[arg-type]
    buffers = step_buffers(world)
    world.set_scenario(scenario)
    world.reset(seed, buffers.observations)
    return world, buffers


def test_the_start_is_seen_as_the_example_says() -> None:
    features = ("position", "pos_norm", "pos_polar")
    _, buffers = begun(Scenario({"score": 1.0}), features=features)
    wanted = [29, 9, 0.453125, 0.140625, 0.335483, 0.191572]
    np.testing.assert_array_equal(buffers.observations[0].round(6), np.array(wanted, np.float32))


def test_the_default_observation_has_the_213_columns_of_the_source() -> None:
    world, buffers = begun(Scenario({"score": 1.0}))
    names = world.spec.observation_names
    assert len(names) == SEED_COLUMNS == buffers.observations.shape[1]
    assert names[29] == "pos_row_29"
    assert names[64 + 9] == "pos_col_9"
    ones = {name for name, value in zip(names, buffers.observations[0], strict=True) if value == 1}
    positions = {name for name in ones if name.startswith("pos_")}
    assert positions == {"pos_row_29", "pos_col_9"}
    assert sum(name.startswith("list_treasure") for name in ones) == 5
    assert {name for name in ones if name.startswith("walked_map")} == {"walked_map_12"}


def test_the_return_is_the_score_by_default() -> None:
    world, buffers = begun(Scenario({"score": 1.0}), num_envs=4)
    walks = [world.best_walk(row).actions for row in range(4)]
    ended: dict[int, tuple[float, float]] = {}
    for step in range(max(map(len, walks))):
        moves = [walk[min(step, len(walk) - 1)] for walk in walks]
        batch = world.step(np.array(moves, np.float32)[:, None], buffers)
        for place, row in enumerate(batch.row.tolist()):
            score = float(batch.columns["score"][place])
            ended.setdefault(row, (score, float(batch.returns[place])))
    assert ended.keys() == {0, 1, 2, 3}
    for score, total in ended.values():
        assert score == pytest.approx(total, abs=1e-9)


def test_every_treasure_is_drawn_as_often_as_any_other() -> None:
    world, _ = begun(Scenario({"score": 1.0}), num_envs=4000)
    counts = [(world.state.placed >> site & 1).sum() for site in range(10)]
    assert sum(counts) == 5 * 4000
    assert np.abs(np.array(counts) - 2000).max() < 5 * np.sqrt(4000 * 0.25)


def test_a_fixed_choice_of_treasures_is_a_pool_of_just_these() -> None:
    world, _ = begun(Scenario({"score": 1.0}), treasure_pool=(7, 2), num_envs=8)
    assert set(world.state.placed.tolist()) == {1 << 7 | 1 << 2}
    assert as_dict(world.settings)["treasure_num"] is None


def test_a_map_of_few_sites_has_columns_for_ten() -> None:
    generate = {"generate": {"count": 2, "seed": 3, "obstacle_share": 0.2, "sites": 2}}
    _, buffers = begun(Scenario({"collect": 1.0}), map=generate, features=("treasure",), num_envs=6)
    assert buffers.observations.shape == (6, 10)
    assert buffers.observations[:, 2:].max() == 0

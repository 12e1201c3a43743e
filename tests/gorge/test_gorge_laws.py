"""Laws of Gorge Walk: what repeats bit for bit, and what is refused.

And what the specification gives as examples, to the last digit.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.registry import as_dict
from tests.installed import said_by

MIXED = Scenario({"walk": 1.0, "collect": 1.0, "score": 1.0})
RANDOM: Any = {"num_envs": 6, "max_steps": 140, "random_start": True}


def begun(scenario: Scenario, seed: int = 1, **given: Any) -> tuple[Gorge, StepBuffers]:
    """A world that was reset, and its buffers with the first observations."""
    world = Gorge(GorgeSettings(**{"num_envs": 1, **given}))
    buffers = step_buffers(world)
    world.set_scenario(scenario)
    world.reset(seed, buffers.observations)
    return world, buffers


def moves(steps: int, rows: int, seed: int = 0) -> np.ndarray:
    """Random moves [steps, rows, 1], the same for a row whatever the number of rows."""
    columns = [np.random.default_rng((seed, row)).integers(0, 4, steps) for row in range(rows)]
    return np.stack(columns, axis=1).astype(np.float32)[..., None]


def digests(steps: int, **given: Any) -> list[str]:
    """A digest for each row of all that it shows while random moves are played."""
    world, buffers = begun(MIXED, 3, **{**RANDOM, **given})
    found = [hashlib.sha256() for _ in range(world.num_envs)]
    for step in moves(steps, world.num_envs):
        world.step(step, buffers)
        for row, digest in enumerate(found):
            digest.update(buffers.observations[row].tobytes())
            digest.update(buffers.rewards[row].tobytes() + buffers.finished[row].tobytes())
            digest.update(world.state.optimum[row].tobytes())
    return [digest.hexdigest() for digest in found]


def test_a_row_plays_alike_in_a_batch_of_any_size_on_any_number_of_threads() -> None:
    many = digests(200, num_envs=400, threads=2)
    assert digests(200) == many[:6]
    assert len(set(many)) == 400


@pytest.mark.parametrize(
    "variable", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=pytest.mark.campaign)]
)
def test_another_process_plays_the_same_without_the_jit_and_with_bounds_checks(
    variable: str, tmp_path: Path
) -> None:
    code = "from test_gorge_laws import *; print(*digests(150))"
    given = {variable: "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    there = said_by("-W", "ignore", "-c", code, cwd=Path(__file__).parent, **given)
    assert there.split() == digests(150)


def test_a_snapshot_of_another_world_and_a_reset_without_a_scenario_are_refused() -> None:
    kept, unset = begun(MIXED, **RANDOM)[0].snapshot(), Gorge(GorgeSettings())
    with pytest.raises(MisuseError, match="set_scenario first"):
        unset.reset(1, step_buffers(unset).observations)
    generated = {**RANDOM, "map": {"generate": {"count": 1, "seed": 4}}, "max_steps": 2000}
    with pytest.raises(MisuseError, match=r"another world: max_steps is 140.*map\.0 is [0-9a-f]"):
        begun(MIXED, **generated)[0].restore(kept)
    with pytest.raises(MisuseError, match="view is 2, here 3"):
        begun(MIXED, **RANDOM, view=3)[0].restore(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", 64), ("map", 1), ("placed", 1024), ("target", 3), ("start", -1), ("difficulty", 9)],
)
def test_a_snapshot_that_leads_out_of_the_grid_is_refused(name: str, value: int) -> None:
    world, _ = begun(MIXED, **RANDOM)
    kept = world.snapshot()
    broken = {**kept, name: np.full_like(kept[name], value)}
    with pytest.raises(MisuseError, match=f"snapshot: {name} holds {value}"):
        world.restore(broken)
    for key, array in world.snapshot().items():
        np.testing.assert_array_equal(array, kept[key])


def test_the_start_is_seen_as_the_example_says() -> None:
    features = ("position", "pos_norm", "pos_polar")
    _, buffers = begun(Scenario({"score": 1.0}), features=features)
    wanted = [29, 9, 0.453125, 0.140625, 0.335483, 0.191572]
    np.testing.assert_array_equal(buffers.observations[0].round(6), np.array(wanted, np.float32))


def test_the_default_observation_has_the_213_columns_of_the_source() -> None:
    world, buffers = begun(Scenario({"score": 1.0}))
    names = world.spec.observation_names
    assert len(names) == 213 == buffers.observations.shape[1]
    assert (names[29], names[64 + 9]) == ("pos_row_29", "pos_col_9")
    ones = {name for name, value in zip(names, buffers.observations[0], strict=True) if value == 1}
    positions = {name for name in ones if name.startswith("pos_")}
    assert positions == {"pos_row_29", "pos_col_9"}
    assert sum(name.startswith("list_treasure") for name in ones) == 5
    assert {name for name in ones if name.startswith("walked_map")} == {"walked_map_12"}


def test_the_return_is_the_score_by_default() -> None:
    world, buffers = begun(Scenario({"score": 1.0}), num_envs=4)
    walks = [world.best_walk(row).actions for row in range(4)]
    ended = set[int]()
    for step in range(max(map(len, walks))):
        moves = [walk[min(step, len(walk) - 1)] for walk in walks]
        batch = world.step(np.array(moves, np.float32)[:, None], buffers)
        assert batch.columns["score"] == pytest.approx(batch.returns, abs=1e-9)
        ended.update(batch.row.tolist())
    assert ended == {0, 1, 2, 3}


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

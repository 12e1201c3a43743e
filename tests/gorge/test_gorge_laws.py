"""Laws of Gorge Walk: what repeats bit for bit, and what is refused."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from tests.installed import said_by

MIXED = Scenario({"walk": 1.0, "collect": 1.0, "score": 1.0})
SETTINGS = GorgeSettings(num_envs=6, max_steps=140, random_start=True)


def begun(settings: GorgeSettings = SETTINGS, seed: int = 3) -> Gorge:
    world = Gorge(settings)
    world.set_scenario(MIXED)
    world.reset(seed, step_buffers(world).observations)
    return world


def moves(steps: int, rows: int, seed: int = 0) -> np.ndarray:
    """Random moves [steps, rows, 1], the same for a row whatever the number of rows."""
    columns = [np.random.default_rng((seed, row)).integers(0, 4, steps) for row in range(rows)]
    return np.stack(columns, axis=1).astype(np.float32)[..., None]


def digests(world: Gorge, actions: np.ndarray) -> list[str]:
    """A digest for each row of all that it shows while `actions` [T, B, 1] are played."""
    found = [hashlib.sha256() for _ in range(world.num_envs)]
    buffers = step_buffers(world)
    for step in actions:
        world.step(step, buffers)
        for row, digest in enumerate(found):
            digest.update(buffers.observations[row].tobytes())
            digest.update(buffers.rewards[row].tobytes() + buffers.finished[row].tobytes())
            digest.update(world.state.optimum[row].tobytes())
    return [digest.hexdigest() for digest in found]


def test_a_row_plays_alike_in_a_batch_of_any_size_on_any_number_of_threads() -> None:
    few = digests(begun(), moves(200, 6))
    many = digests(begun(replace(SETTINGS, num_envs=400, threads=2)), moves(200, 400))
    assert few == many[:6]
    assert len(set(many)) == 400


@pytest.mark.parametrize(
    "variable", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=pytest.mark.campaign)]
)
def test_another_process_plays_the_same_without_the_jit_and_with_bounds_checks(
    variable: str, tmp_path: Path
) -> None:
    code = "from test_gorge_laws import *; print(*digests(begun(), moves(150, 6)))"
    given = {variable: "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    there = said_by("-W", "ignore", "-c", code, cwd=Path(__file__).parent, **given)
    assert there.split() == digests(begun(), moves(150, 6))


def test_a_snapshot_of_another_map_or_other_settings_is_refused() -> None:
    kept = begun().snapshot()
    generated = replace(SETTINGS, map={"generate": {"count": 1, "seed": 4}}, max_steps=2000)
    with pytest.raises(MisuseError, match=r"another world: max_steps is 140.*map\.0 is [0-9a-f]"):
        Gorge(generated).restore(kept)
    with pytest.raises(MisuseError, match="view is 2, here 3"):
        Gorge(replace(SETTINGS, view=3)).restore(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x", 64), ("map", 1), ("placed", 1024), ("target", 3), ("start", -1), ("difficulty", 9)],
)
def test_a_snapshot_that_leads_out_of_the_grid_is_refused(name: str, value: int) -> None:
    world = begun()
    kept = world.snapshot()
    broken = {**kept, name: np.full_like(kept[name], value)}
    with pytest.raises(MisuseError, match=f"snapshot: {name} holds {value}"):
        world.restore(broken)
    for key, array in world.snapshot().items():
        np.testing.assert_array_equal(array, kept[key])


def test_nothing_is_played_before_a_scenario_is_set() -> None:
    world = Gorge(SETTINGS)
    with pytest.raises(MisuseError, match="set_scenario first"):
        world.reset(1, step_buffers(world).observations)


def test_a_new_limit_has_its_own_best_scores() -> None:
    world = begun(replace(SETTINGS, random_start=False, max_steps=400))
    world.set_scenario(Scenario({"score": 1.0}))
    world.reset(1, step_buffers(world).observations)
    first = world.state.optimum.copy()
    world.set_scenario(Scenario({"score": 1.0}, parameters={"score.end": 0.0}))
    world.reset(1, step_buffers(world).observations)
    assert (world.state.optimum < first).all()
    for row in range(world.num_envs):
        assert world.state.optimum[row] == pytest.approx(world.best_walk(row).score, abs=1e-9)

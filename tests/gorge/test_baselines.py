"""Scripted players: what each reaches."""

import numpy as np
import pytest

from aimbot_lab.foundation.world import BatchWorld, Scenario, step_buffers
from aimbot_lab.worlds.gorge.settings import DEFAULT_FEATURES, GorgeSettings
from aimbot_lab.worlds.gorge.world_type import GORGE, Explorer

EVEN = {"walk": 1.0, "collect": 1.0, "score": 1.0}


def shares(settings: GorgeSettings, player: str, *, episodes: int) -> tuple[list, list, list]:
    """Score over optimum, whether won, and the cell, of so many episodes."""
    world: BatchWorld = GORGE.make(settings)
    buffers = step_buffers(world)
    world.set_scenario(Scenario(EVEN))
    world.reset(4, buffers.observations)
    act = GORGE.baselines(settings)[player](world, 1)
    starts = np.ones(world.num_envs, np.bool_)
    score, won, cells = [], [], []
    while len(won) < episodes:
        batch = world.step(act(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        best = batch.columns["optimum"]
        score += np.where(best > 0, batch.columns["score"] / np.maximum(best, 1e-300), 1.0).tolist()
        won += batch.won.tolist()
        cells += batch.cell
    return score, won, cells


@pytest.mark.parametrize("given", [{}, {"score_decay": True, "random_start": True}])
def test_the_optimum_has_all_of_the_best_score_in_every_cell(given: dict[str, bool]) -> None:
    score, won, cells = shares(GorgeSettings(num_envs=32, **given), "optimum", episodes=90)
    assert score == pytest.approx([1.0] * len(score), abs=1e-9)
    assert len(set(cells)) == 11
    for good, cell in zip(won, cells, strict=True):
        assert good or cell.target == "collect"  # which asks for treasures that do not pay, too


def test_the_optimum_has_all_of_the_best_score_where_the_limit_is_short() -> None:
    settings = GorgeSettings(num_envs=16, max_steps=150, map={"generate": {"count": 3, "seed": 2}})
    score, _, _ = shares(settings, "optimum", episodes=40)
    assert score == pytest.approx([1.0] * len(score), abs=1e-9)


def test_the_explorer_is_better_than_chance_and_worse_than_the_optimum() -> None:
    settings = GorgeSettings(num_envs=32, max_steps=600, features=(*DEFAULT_FEATURES, "end_map"))
    explorer, _, _ = shares(settings, "explorer", episodes=60)
    chance, _, _ = shares(settings, "random", episodes=60)
    assert np.mean(chance) < np.mean(explorer) < 1


WINDOWS = ("obstacle_map", "treasure_map", "end_map", "walked_map")


def seen(marks: dict[str, list[tuple[int, int]]]) -> np.ndarray:
    """An observation [1, D] of windows with marks at these (dx, dz)."""
    windows = np.zeros((len(WINDOWS), 5, 5), np.float32)
    for name, places in marks.items():
        for dx, dz in places:
            windows[WINDOWS.index(name), dx + 2, dz + 2] = 1
    return windows.reshape(1, -1)


@pytest.mark.parametrize(
    ("marks", "move"),
    [
        ({"treasure_map": [(0, 2)], "end_map": [(2, 0)]}, 0),
        ({"end_map": [(0, -2)], "walked_map": [(0, -1)]}, 1),
        ({"walked_map": [(0, 1), (0, -1), (1, 0)]}, 2),
        ({"obstacle_map": [(0, 1), (0, -1), (-1, 0)], "walked_map": [(1, 0)]}, 3),
        # The treasure is behind the end, so the way to it leads around.
        ({"treasure_map": [(0, 2)], "end_map": [(0, 1)], "obstacle_map": [(1, 1), (1, 0)]}, 2),
    ],
)
def test_the_explorer_goes_where_it_says(marks: dict, move: int) -> None:
    explorer = Explorer(GorgeSettings(features=WINDOWS), seed=0)
    for _ in range(10):
        assert explorer(seen(marks)).tolist() == [[move]]


def test_the_explorer_breaks_ties_at_random_and_by_its_seed() -> None:
    one, two = (Explorer(GorgeSettings(features=WINDOWS), seed=9) for _ in range(2))
    nothing = np.repeat(seen({}), 64, axis=0)
    moves = one(nothing)
    np.testing.assert_array_equal(moves, two(nothing))
    assert set(moves[:, 0].tolist()) == {0, 1, 2, 3}

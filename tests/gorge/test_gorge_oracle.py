"""Gorge Walk agrees with the oracle, number for number, over play that meets every rule."""

import os

import numpy as np
import pytest
from gorge_match import Match, scenario_with, settings_with

from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GeneratedMaps, GenerateSettings

STEPS = int(os.environ.get("AIMBOT_LAB_GORGE_ORACLE_STEPS", "330"))  # of 24 rows
EVERY_CELL = {(target, k) for target in ("walk", "collect") for k in range(1, 6)} | {("score", 0)}
EVEN = {"walk": 1.0, "collect": 1.0, "score": 1.0}
DECAY = pytest.mark.parametrize("decay", [pytest.param(False, marks=pytest.mark.campaign), True])
GENERATED = GeneratedMaps(generate=GenerateSettings(count=3, seed=5, obstacle_share=0.3, sites=6))


@pytest.mark.parametrize(
    "view", [4, *(pytest.param(view, marks=pytest.mark.campaign) for view in (1, 2, 3))]
)
def test_every_target_and_difficulty_is_played_as_the_oracle_plays_it(view: int) -> None:
    world = Gorge(settings_with(view=view))
    seen = Match(world, scenario_with(EVEN, drawn=False), seed=view).play(STEPS)
    assert seen.cells == EVERY_CELL
    assert seen.won >= {("walk", True), ("collect", True), ("collect", False), ("score", True)}
    assert min(seen.bumps, seen.taken, seen.late, seen.left_behind) > 0


def test_the_memory_of_all_cells_is_that_of_the_oracle() -> None:
    world = Gorge(settings_with(num_envs=2, features=("location_memory", "walked_map")))
    match = Match(world, scenario_with({"collect": 1.0}, drawn=False), seed=1)
    match.play(260)
    arrivals = world.state.arrivals.astype(int).sum(axis=1)
    np.testing.assert_array_equal(arrivals, 1 + world.state.steps - world.state.bumps)


@DECAY
def test_numbers_drawn_for_each_episode_are_played_as_the_oracle_plays_them(decay: bool) -> None:
    world = Gorge(settings_with(score_decay=decay, view=2))
    seen = Match(world, scenario_with(EVEN, drawn=True), seed=7).play(STEPS // 2)
    assert seen.taken > 0
    assert {target for target, _ in seen.won} == {"walk", "collect", "score"}


@DECAY
def test_generated_maps_are_played_as_the_oracle_plays_them(decay: bool) -> None:
    given = {"map": GENERATED, "treasure_pool": (5, 0, 3), "treasure_num": 2, "max_steps": 300}
    world = Gorge(settings_with(score_decay=decay, random_start=True, **given))
    match = Match(world, scenario_with(EVEN, drawn=False), seed=3)
    seen = match.play(STEPS // 2)
    assert {game.ground for game in match.games} == set(match.grounds)
    assert seen.taken > 0

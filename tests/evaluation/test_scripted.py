"""The scripted agents: what they do with what they see, and how often that wins."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from aimbot_lab.evaluation.episodes import CellScore, play, score_cell
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.foundation.world_type import Act, RandomAgent
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings
from aimbot_lab.worlds.arena.world_type import GreedyAgent

EPISODES = 200
FIRST_CELLS = (Cell("free", 0), Cell("goto", 1), Cell("attack", 1))
FREE, GOTO, ATTACK = 0.0, 1.0, 2.0
STOP, FORWARD = 0.0, 1.0


def evaluate(world: Arena, act: Act, cells: Sequence[Cell], *, seed: int) -> tuple[CellScore, ...]:
    return tuple(score_cell(play(world, act, cell, seed=seed)) for cell in cells)


def new_world(num_envs: int = EPISODES, **rays: object) -> Arena:
    return Arena(ArenaSettings(num_envs=num_envs, rays=RaySettings(**rays)))


def ray_angles(world: Arena) -> np.ndarray:
    """Angles [R] in rad to the gun's line, as an episode of `world` casts its rays."""
    world.set_scenario(Scenario({"stay": 1.0}))
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(0, buffers.observations)
    rays = slice(world.settings.rays.count)
    return np.arctan2(world.state.ray_sin[0, rays], world.state.ray_cos[0, rays])


def greedy_in(world: Arena) -> GreedyAgent:
    own = world.settings
    return GreedyAgent(world.spec, rays=own.rays, turn_per_unit=own.mouse_factor)


def told(scores: tuple[CellScore, ...]) -> str:
    return "\n".join(
        f"{score.target} {score.difficulty}: {score.win_rate:.3f} "
        f"[{score.lower:.3f}, {score.upper:.3f}] of {score.episodes}"
        for score in scores
    )


def seen(world: Arena, **values: float) -> np.ndarray:
    """One observation [1, D]: walls 10 m away all round, agent at (20, 20), yaw 0, no base."""
    names = world.spec.observation_names
    base = {"agent_x": 20.0, "agent_z": 20.0, "cos_yaw": 1.0, "gun_ready": 1.0}
    base |= {name: 10.0 for name in names if name.endswith("_distance")}
    base |= {name: 1.0 for name in names if name.endswith("_wall")} | values
    assert set(base) <= set(names)
    return np.array([[base.get(name, 0.0) for name in names]], np.float32)


@pytest.mark.parametrize("rays", [{"side_count": 0}, {"middle_count": 9, "view_angle": 130.0}])
def test_settings_know_the_angles_of_an_episodes_rays(rays: dict[str, float]) -> None:
    world = new_world(2, **rays)
    np.testing.assert_allclose(world.settings.rays.angles, ray_angles(world), atol=1e-6)


@pytest.mark.parametrize("target", ["goto", "attack"])
def test_greedy_wins_less_the_harder_the_block(target: str) -> None:
    world = new_world()
    cells = [Cell(target, difficulty) for difficulty in range(1, 6)]
    scores = evaluate(world, greedy_in(world), cells, seed=7)
    print(told(scores))  # noqa: T201
    rates = [score.win_rate for score in scores]
    assert all(easier > harder for easier, harder in pairwise(rates)), told(scores)
    assert scores[0].lower > scores[-1].upper, told(scores)


def test_greedy_beats_random_on_every_target() -> None:
    world = new_world()
    greedy = evaluate(world, greedy_in(world), FIRST_CELLS, seed=7)
    random = evaluate(world, RandomAgent(world.spec, 7), FIRST_CELLS, seed=7)
    for better, worse in zip(greedy, random, strict=True):
        assert better.lower > worse.upper, told((better, worse))


def test_random_plays_every_action_and_repeats_it_for_its_seed() -> None:
    world = new_world(500)
    nothing = np.zeros((500, len(world.spec.observation_names)), np.float32)
    one, same, other = (RandomAgent(world.spec, seed)(nothing) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    for column, size in enumerate(world.spec.branches):
        assert set(one[:, column]) == set(range(size))
    assert one.dtype == np.float32
    assert -5.0 <= one[:, 3].min() < -4.8 < 4.8 < one[:, 3].max() <= 5.0


def test_greedy_turns_the_shorter_way_to_the_fire_base_and_walks() -> None:
    world = new_world(1)
    greedy = greedy_in(world)
    for x, z, mouse in [(30.0, 20.0, 5.0), (10.0, 20.0, -5.0), (21.0, 30.0, np.arctan(0.1) / 0.08)]:
        goal = {"target": GOTO, "fire_base_x": x, "fire_base_z": z, "fire_base_diameter": 4.0}
        action = greedy(seen(world, **goal))[0]
        np.testing.assert_allclose(action, [FORWARD, 0.0, 0.0, mouse], rtol=1e-6)


def test_greedy_shoots_when_the_gun_is_ready_and_its_line_meets_an_enemy() -> None:
    world = new_world(1)
    greedy = greedy_in(world)
    shot = greedy(seen(world, target=ATTACK, ray_9_tag=1.0))[0]
    waiting = greedy(seen(world, target=ATTACK, ray_9_tag=1.0, gun_ready=0.0))[0]
    beside = greedy(seen(world, target=FREE, ray_8_tag=1.0))[0]
    assert shot.tolist() == [STOP, 0.0, 1.0, 0.0]
    assert waiting.tolist() == [STOP, 0.0, 0.0, 0.0]
    assert beside.tolist()[:3] == [FORWARD, 0.0, 0.0]
    assert beside[3] < 0.0

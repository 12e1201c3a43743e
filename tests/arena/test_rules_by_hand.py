"""Single rules of the arena, each in a scene that was set up by hand."""

import math

import numpy as np
import pytest
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.world import Scenario


def set_scene(stage: Stage, **arrays) -> None:
    """Overwrite state arrays of every row; enemies and obstacles are those given, no others."""
    state = stage.arena.state
    state.obstacle_count[:] = len(arrays.get("obstacles", ()))
    state.enemy_count[:] = len(arrays.get("enemies", ()))
    state.enemy_is_target[:] = True
    for name in ("obstacles", "enemies", "enemy_is_target"):
        for index, numbers in enumerate(arrays.pop(name, ())):
            getattr(state, name)[:, index] = numbers
    state.enemy_hits_left[:] = arrays.pop("enemy_hits_left", 1)
    for name, numbers in arrays.items():
        getattr(state, name)[:] = numbers


def target_hits(stage: Stage) -> float:
    """Sum of that reward term over the running episode of row 0."""
    return float(stage.arena.state.terms[0, stage.arena.spec.reward_terms.index("target_hit")])


def hits_by_decision(stage: Stage, count: int) -> list[int]:
    """How often each of `count` attacks hit."""
    hits = []
    for _ in range(count):
        before = target_hits(stage)
        stage.repeat(0, 0, 1, 0)
        hits.append(round((target_hits(stage) - before) / 25.0))
    return hits


def free_stage(**settings) -> Stage:
    """One row of Free, the agent at (20, 20) looking along +z."""
    stage = new_stage(Scenario({"free": 1.0}), num_envs=1, **settings)
    set_scene(stage, position=(20.0, 20.0), yaw=0.0, enemies=[(20.0, 30.0), (5.0, 5.0)])
    return stage


def test_the_gun_fires_every_third_decision() -> None:
    stage = free_stage()
    stage.arena.state.enemy_hits_left[:] = 100
    assert hits_by_decision(stage, 9) == [1, 0, 0] * 3


@pytest.mark.parametrize(("reach", "hits"), [(9.5, 1), (9.4999, 0)])
def test_the_gun_reaches_its_range_and_no_farther(reach: float, hits: int) -> None:
    assert hits_by_decision(free_stage(gun_range=reach), 1) == [hits]


@pytest.mark.parametrize(("reach", "tag"), [(9.5, 1.0), (9.4999, -1.0)])
def test_rays_reach_their_range_and_no_farther(reach: float, tag: float) -> None:
    stage = free_stage(rays={"range": reach})
    stage.repeat(0, 0, 0, 0)
    middle = 13 + 9
    assert stage.buffers.observations[0, middle] == tag
    assert stage.buffers.observations[0, middle + 19] == np.float32(9.5 if tag > 0 else 0.0)


def test_a_win_and_the_time_out_in_one_decision_is_a_win() -> None:
    stage = new_stage(Scenario({"goto": 1.0}), num_envs=2)
    scene = {"fire_base": (20.0, 21.4, 3.0), "decisions": 299, "yaw": 0.0}
    set_scene(stage, position=[(20.0, 20.0), (10.0, 20.0)], **scene)
    batch = stage.repeat(1, 0, 0, 0)
    assert batch.won.tolist() == [True, False]
    assert list(batch.length) == [300, 300]
    terms = dict(zip(stage.arena.spec.reward_terms, batch.terms.T.tolist(), strict=True))
    assert (terms["win"], terms["lose"], terms["in_area"][0]) == ([999, 0], [0, -999], 5)
    assert list(stage.buffers.final_observations[:, 6]) == [0.0, 0.0]


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_25_full_turns_of_the_mouse_are_10_rad_and_punished_as_such(direction: float) -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    rewards = []
    for _ in range(26):
        stage.repeat(0, 0, 0, 5.0 * direction)
        rewards.append(float(stage.buffers.rewards[0]))
    assert rewards[:24] == [pytest.approx(-0.3)] * 24
    assert rewards[24:] == pytest.approx([-10.0, -10.4])
    stage.repeat(0, 0, 0, 0.0)
    assert stage.buffers.rewards[0] == pytest.approx(-10.4), "-S falls due when the mouse rests"


def test_the_running_spin_sum_is_exact_after_100_000_decisions() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1, spin_threshold=1e-6)
    mice = np.random.default_rng(0).normal(1.0, 3.0, 100_000).astype(np.float32)
    for mouse in mice:
        stage.repeat(0, 0, 0, mouse)
    net_turn = math.fsum(0.08 * min(max(float(mouse), -5.0), 5.0) for mouse in mice[-40:])
    assert stage.buffers.rewards[0] == pytest.approx(-abs(net_turn), rel=1e-6)
    for _ in range(40):
        stage.repeat(0, 0, 0, 0)
    assert stage.arena.state.spin_sum[0] == 0, "nothing is left of turns that left the window"


def test_the_mouse_turns_right_and_is_clipped() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    stage.repeat(0, 0, 0, 2.0)
    assert stage.arena.state.yaw[0] == pytest.approx(0.16)
    stage.repeat(0, 0, 0, 1e30)
    assert stage.arena.state.yaw[0] == pytest.approx(0.56)
    stage.arena.step(np.array([[0, 0, 0, 1e300]]), stage.buffers)
    assert stage.arena.state.yaw[0] == pytest.approx(0.96)


def test_a_start_outside_the_floor_is_refused() -> None:
    with pytest.raises(ValueError, match="start_position"):
        new_stage(Scenario({"goto": 1.0}), start_position=(100.0, 3.0))

"""Single rules of the arena, each in a scene that was set up by hand."""

import math

import numpy as np
import pytest
from arena_stage import Stage, new_stage

from aimbot_lab.foundation.episodes import result_line
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world import Scenario, new_step_buffers

FREE, GOTO, ATTACK, STAY = 0, 1, 2, 4


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


def term(stage: Stage, name: str) -> float:
    """Sum of a reward term over the running episode of row 0."""
    return float(stage.arena.state.terms[0, stage.arena.spec.reward_terms.index(name)])


def hits_by_decision(stage: Stage, count: int, name: str) -> list[int]:
    """How often each of `count` attacks hit."""
    hits = []
    for _ in range(count):
        before = term(stage, name)
        stage.repeat(0, 0, 1, 0)
        hits.append(round((term(stage, name) - before) / 25.0))
    return hits


def free_stage(**settings) -> Stage:
    """One row of Free, the agent at (20, 20) looking along +z."""
    stage = new_stage(Scenario({"free": 1.0}), num_envs=1, **settings)
    set_scene(stage, position=(20.0, 20.0), yaw=0.0, enemies=[(20.0, 30.0), (5.0, 5.0)])
    return stage


def test_the_gun_fires_every_third_decision() -> None:
    stage = free_stage()
    stage.arena.state.enemy_hits_left[:] = 100
    assert hits_by_decision(stage, 9, "target_hit") == [1, 0, 0] * 3


def test_gun_ready_tells_when_an_attack_fires() -> None:
    stage = free_stage()
    stage.arena.state.enemy_hits_left[:] = 100
    ready = [bool(stage.buffers.observations[0, 7])]
    hits = []
    for _ in range(8):
        hits += hits_by_decision(stage, 1, "target_hit")
        ready.append(bool(stage.buffers.observations[0, 7]))
    assert [bool(hit) for hit in hits] == ready[:-1]


def test_a_living_enemy_shields_the_next_and_a_dead_one_does_not() -> None:
    stage = free_stage(gun_cooldown=0.0)
    set_scene(stage, enemies=[(20.0, 34.0), (20.3, 30.0), (5.0, 5.0)])
    stage.repeat(0, 0, 1, 0)
    assert list(stage.arena.state.enemy_hits_left[0, :3]) == [1, 0, 1]
    stage.repeat(0, 0, 1, 0)
    assert list(stage.arena.state.enemy_hits_left[0, :3]) == [0, 0, 1]


@pytest.mark.parametrize(("box", "hits"), [((19.0, 25.0, 21.0, 26.0), 0), ((20.1, 25, 22, 26), 1)])
def test_an_obstacle_stops_the_shot(box: tuple[float, ...], hits: int) -> None:
    stage = new_stage(Scenario({"attack": 1.0}), num_envs=1)
    scene = {"position": (20.0, 20.0), "yaw": 0.0, "obstacles": [box]}
    # The second one is off the line and lives, so that the episode goes on.
    set_scene(stage, **scene, enemies=[(20.0, 30.0), (21.5, 30.5)], fire_base=(20.0, 30.0, 4.0))
    assert hits_by_decision(stage, 1, "target_hit") == [hits]


@pytest.mark.parametrize(("reach", "hits"), [(9.5, 1), (9.4999, 0)])
def test_the_gun_reaches_its_range_and_no_farther(reach: float, hits: int) -> None:
    assert hits_by_decision(free_stage(gun_range=reach), 1, "target_hit") == [hits]


@pytest.mark.parametrize(("reach", "tag"), [(9.5, 1.0), (9.4999, -1.0)])
def test_rays_reach_their_range_and_no_farther(reach: float, tag: float) -> None:
    stage = free_stage(rays={"range": reach})
    stage.repeat(0, 0, 0, 0)
    middle = 13 + 9
    assert stage.buffers.observations[0, middle] == tag
    assert stage.buffers.observations[0, middle + 19] == np.float32(9.5 if tag > 0 else 0.0)


@pytest.mark.parametrize(("target", "earned"), [(True, 25.0), (False, 3.0)])
def test_in_attack_only_an_enemy_of_the_fire_base_is_a_target(target: bool, earned: float) -> None:
    stage = new_stage(Scenario({"attack": 1.0}), num_envs=1)
    scene = {"position": (20.0, 20.0), "yaw": 0.0, "fire_base": (20.0, 31.0, 2.0)}
    set_scene(stage, **scene, enemies=[(20.0, 30.0), (20.5, 31.0)])
    stage.arena.state.enemy_is_target[:, :2] = target, True
    stage.repeat(0, 0, 1, 0)
    assert term(stage, "target_hit") + term(stage, "non_target_hit") == earned


def test_a_win_and_the_time_out_in_one_decision_is_a_win() -> None:
    stage = new_stage(Scenario({"goto": 1.0}), num_envs=2)
    scene = {"fire_base": (20.0, 21.4, 3.0), "decisions": 299, "yaw": 0.0}
    set_scene(stage, position=[(20.0, 20.0), (10.0, 20.0)], **scene)
    batch = stage.repeat(1, 0, 0, 0)
    assert batch.won.tolist() == [True, False]
    assert list(batch.length) == [300, 300]
    terms = dict(zip(stage.arena.spec.reward_terms, batch.terms.T, strict=True))
    assert list(terms["win"]) == [999.0, 0.0]
    assert list(terms["lose"]) == [0.0, -999.0]
    assert terms["in_area"][0] == 5.0
    assert list(stage.buffers.final_observations[:, 6]) == [0.0, 0.0]


def test_the_episode_goes_on_until_the_last_decision() -> None:
    stage = new_stage(Scenario({"free": 1.0}), num_envs=1)
    stage.arena.state.decisions[:] = 298
    assert not stage.repeat(0, 0, 0, 0)
    assert result_line(stage.repeat(0, 0, 0, 0), 0).startswith(
        "Warning|Result|Lose|target=free|seconds="
    )


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


def test_turning_back_and_forth_is_no_spin() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    for decision in range(80):
        stage.repeat(0, 0, 0, 5.0 if decision % 2 else -5.0)
        assert stage.buffers.rewards[0] == pytest.approx(-0.3)


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


def test_a_key_held_against_a_wall_is_no_move() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    set_scene(stage, position=(20.0, 46.5), yaw=0.0)
    stage.repeat(1, 0, 0, 0)
    assert term(stage, "move_penalty") == 0.0
    stage.repeat(1, 1, 0, 0)
    assert term(stage, "move_penalty") == -0.5
    assert stage.arena.state.position[0] == pytest.approx([20.0 + 0.5 * math.sqrt(0.5), 46.5])


@pytest.mark.parametrize(
    ("keys", "way"),
    [
        ((1, 0), (0.6, 0.8)),
        ((2, 0), (-0.6, -0.8)),
        ((0, 1), (0.8, -0.6)),
        ((0, 2), (-0.8, 0.6)),
        ((1, 1), (1.4 / math.sqrt(2), 0.2 / math.sqrt(2))),
    ],
)
def test_the_keys_lead_where_the_agent_looks(keys, way) -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    set_scene(stage, position=(20.0, 20.0), yaw=math.atan2(0.6, 0.8))
    stage.repeat(*keys, 0, 0)
    moved = stage.arena.state.position[0] - 20.0
    assert moved == pytest.approx(0.5 * np.array(way))


def test_the_agent_slides_along_an_enemy_and_never_into_it() -> None:
    stage = free_stage()
    set_scene(stage, enemies=[(20.2, 22.0), (5.0, 5.0)])
    for _ in range(12):
        stage.repeat(1, 0, 0, 0)
    assert stage.arena.state.position[0, 1] > 23.0
    assert stage.arena.state.position[0, 0] < 20.0


def test_the_mouse_turns_right_and_is_clipped() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    stage.repeat(0, 0, 0, 2.0)
    assert stage.arena.state.yaw[0] == pytest.approx(0.16)
    stage.repeat(0, 0, 0, 1e30)
    assert stage.arena.state.yaw[0] == pytest.approx(0.56)
    stage.arena.step(np.array([[0, 0, 0, 1e300]]), stage.buffers)
    assert stage.arena.state.yaw[0] == pytest.approx(0.96)


@pytest.mark.parametrize("tags", ["label", "one_hot"])
def test_an_observation_follows_the_table(tags: str) -> None:
    stage = new_stage(Scenario({"attack": 1.0}), num_envs=1, rays={"tags": tags})
    scene = {"position": (20.0, 10.0), "yaw": math.pi / 2, "decisions": 40, "gun_ticks": 10}
    wall = (29.0, 0.0, 30.0, 9.9)  # on the right half of the view, beside the middle ray
    # The second one is a target behind the agent: without a living target the attack is won.
    enemies = [(25.0, 10.0), (19.5, 9.0)]
    set_scene(stage, **scene, obstacles=[wall], enemies=enemies, fire_base=(21.0, 10.0, 4.0))
    stage.repeat(0, 0, 0, 0)
    seen = stage.buffers.observations[0]
    head = [2, 21, 0, 10, 4, 1, 30 - 4.1, 0, 20, 0, 10, 0, 1]
    assert seen[:13] == pytest.approx(head, abs=1e-6)
    width = 1 if tags == "label" else 3
    assert len(seen) == 13 + (width + 1) * 19
    coded = seen[13 : 13 + 19 * width].reshape(19, width)
    enemy, brick = ([1.0], [0.0]) if tags == "label" else ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    distances = seen[13 + 19 * width :]
    assert list(coded[9]) == enemy
    assert distances[9] == pytest.approx(4.5)
    assert list(coded[18]) == brick
    assert distances[18] == pytest.approx(9.0 * math.sqrt(2.0), abs=1e-5)
    assert list(coded[0]) == brick
    assert distances[0] == pytest.approx(27.0 * math.sqrt(2.0), abs=1e-4)


def test_rays_lie_where_the_shares_of_the_view_put_them() -> None:
    stage = new_stage(Scenario({"stay": 1.0}), num_envs=1)
    set_scene(stage, position=(23.5, 0.5), yaw=0.0)
    stage.repeat(0, 0, 0, 0)
    distances = stage.buffers.observations[0, 13 + 19 :].astype(float)
    middle = [-6.75, -3.375, 0.0, 3.375, 6.75]
    side = [6.75 + 38.25 * k / 7 for k in range(1, 8)]
    angles = np.radians([-angle for angle in reversed(side)] + middle + side)
    ahead = np.minimum(46.5 / np.cos(angles), 23.5 / np.maximum(np.abs(np.sin(angles)), 1e-9))
    assert distances == pytest.approx(ahead, abs=1e-4)


@pytest.mark.parametrize("aside", [0.0, 0.3, 0.6, 2.0, 12.0])
def test_facing_pays_for_the_line_through_the_detected_enemy(aside: float) -> None:
    stage = free_stage()
    set_scene(stage, enemies=[(20.0 + aside, 30.0), (20.1, 10.0)])
    stage.repeat(0, 0, 0, 0)
    rays = stage.buffers.observations[0, 13 : 13 + 19]
    detected = bool((rays == 1.0).any())
    assert detected == (aside != 12.0)
    wanted = 0.0 if not detected else min(2.0, 1.0 / math.sqrt(max(aside, 0.1) / 2.0))
    assert term(stage, "facing") == pytest.approx(wanted)


def test_no_episode_is_longer_than_its_limit_whatever_the_period() -> None:
    stage = new_stage(Scenario({"goto": 1.0}), num_envs=1, decision_period=8)
    for decision in range(1, 188):
        ended = stage.repeat(0, 0, 0, 0.0)
        assert bool(ended) == (decision == 187)
    assert "seconds=29.9" in result_line(ended, 0)


def test_an_attack_is_won_although_an_enemy_outside_the_fire_base_lives() -> None:
    stage = new_stage(Scenario({"attack": 1.0}), num_envs=1)
    state = stage.arena.state
    state.obstacle_count[0] = 0
    state.position[0], state.yaw[0] = (20.0, 20.0), 0.0
    state.fire_base[0] = (20.0, 31.0, 4.0)
    state.enemies[0, :2] = ((20.0, 31.0), (40.0, 40.0))
    state.enemy_is_target[0, :2] = True, False
    state.enemy_hits_left[0, :2] = 1
    state.enemy_count[0] = 2
    ended = stage.repeat(0, 0, 1, 0.0)
    assert ended.won.tolist() == [True]


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (4, 5), (16,)])
def test_actions_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    arena = new_stage(Scenario({"goto": 1.0}), num_envs=4).arena
    kept = arena.snapshot()
    buffers = new_step_buffers(4, 51)
    with pytest.raises(ActionError, match="shape"):
        arena.step(np.zeros(shape, np.float32), buffers)
    for name, array in arena.snapshot().items():
        np.testing.assert_array_equal(array, kept[name])


def test_a_start_outside_the_floor_is_refused() -> None:
    with pytest.raises(ValueError, match="start_position"):
        new_stage(Scenario({"goto": 1.0}), start_position=(100.0, 3.0))

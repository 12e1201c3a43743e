"""The duel's rules, one by one, in matches set up by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from duel_stage import begun, reset, scenario

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import result_line
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.duel.core.state import OF_SEATS
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.layouts import FLOOR_SIZE, Hall
from aimbot_lab.worlds.duel.settings import DuelSettings

STILL = np.zeros(4, np.float32)
SHOOT = np.array([0, 0, 1, 0], np.float32)
HOME, AWAY = 0, 1  # seats of a single match


def faced(gap: float, **settings) -> tuple[Duel, list]:
    """One match in the empty hall, whose agents look at each other over `gap` metres."""
    duel, buffers = begun(DuelSettings(num_envs=1, **settings), scenario(1))
    state = duel.state
    state.seats.obstacle_count[:] = 0
    duel.tables.layouts.box_count[:] = 0
    state.seats.position[:] = [FLOOR_SIZE / 2, (FLOOR_SIZE - gap) / 2]
    state.seats.yaw[:] = 0.0
    state.seats.ahead[:] = [0.0, 1.0]
    state.seats.enemies[:, 0] = [FLOOR_SIZE / 2, (FLOOR_SIZE + gap) / 2]
    return duel, buffers


def everywhere(boxes: tuple[tuple[float, ...], ...]) -> list[Hall]:
    """A hall of these boxes, for every difficulty."""
    hall = Hall("hall", 1, boxes, (15.0, 3.0))
    return [replace(hall, difficulty=level) for level in range(1, 6)]


def step(duel: Duel, buffers, home: np.ndarray, away: np.ndarray):
    return duel.step(np.stack([home, away]), buffers)


def test_three_hits_win_and_a_hit_earns_what_the_other_loses() -> None:
    duel, buffers = faced(10.0, rewards={"facing": 0.0, "spin_penalty": 0.0})
    rewards = []
    for number in range(7):
        batch = step(duel, buffers, SHOOT, STILL)
        rewards.append(float(buffers.rewards[HOME]))
        assert bool(batch) == (number == 6)
    assert rewards == [10.0, 0.0, 0.0, 10.0, 0.0, 0.0, 110.0]
    assert batch.outcome.tolist() == [1, -1]
    assert batch.columns["score"].tolist() == [1.0, 0.0]
    line = result_line(batch, HOME, duel.spec.result_columns)
    assert line == "Warning|Result|Win|target=duel|difficulty=1|seconds=0.7|return=130.0"
    assert result_line(batch, AWAY, ()).startswith("Warning|Result|Lose|")


@pytest.mark.parametrize(("rule", "outcome"), [("draw", [0, 0]), ("health", [1, -1])])
def test_time_is_up(rule: str, outcome: list[int]) -> None:
    duel, buffers = faced(10.0, time_limit=0.5, on_timeout=rule)
    step(duel, buffers, SHOOT, STILL)
    for _ in range(4):
        batch = step(duel, buffers, STILL, STILL)
    assert batch.outcome.tolist() == outcome
    assert buffers.finished.all()
    assert not buffers.truncated.any()


def test_the_opponent_is_a_unit_that_is_shown_only_where_a_ray_hits_it() -> None:
    duel, buffers = faced(10.0, observation={"units": True})
    step(duel, buffers, STILL, STILL)
    names = duel.spec.observation_names
    seen = dict(zip(names, buffers.observations[HOME].tolist(), strict=True))
    columns = ("ahead", "right", "hits_left", "seen", "looks_ahead", "looks_right")
    assert [seen[f"opponent_0_{name}"] for name in columns] == [10.0, 0.0, 1.0, 1.0, -1.0, 0.0]
    duel.state.seats.yaw[HOME] = math.pi
    step(duel, buffers, STILL, STILL)
    hidden = [k for k, name in enumerate(names) if name.startswith("opponent_0")]
    assert not buffers.observations[HOME, hidden].any()


@pytest.mark.parametrize("mover", [0, 1])
def test_a_box_pushes_before_the_opponent_that_is_equally_deep(mover: int) -> None:
    """In whole 16ths of a metre, so that rounding decides nothing: 5 from the box, 13 of 16."""
    settings = DuelSettings(num_envs=1, decision_period=1, fixed_timestep=1 / 32, move_speed=0.5)
    duel = Duel(settings, everywhere(((6.0, 10.0, 14.0, 11.0),)))
    buffers = reset(duel, scenario(1))
    seats, stood = duel.state.seats, np.array([10.3125, 10.4375])
    seats.position[mover], seats.position[1 - mover] = (10.0, 9.6875 - 1 / 64), FLOOR_SIZE - stood
    seats.enemies[:, 0] = FLOOR_SIZE - seats.position[::-1]
    seats.yaw[mover] = 0.0
    actions = np.zeros((2, 4), np.float32)
    actions[mover, 0] = 1
    duel.step(actions, buffers)
    down = np.array([10.0, 9.5]) - stood  # the box pushes first, then the opponent
    np.testing.assert_allclose(
        seats.position[mover], stood + down / np.hypot(*down), rtol=0, atol=1e-9
    )


def test_slower_hands_repeat_their_last_action_and_are_masked_between() -> None:
    duel, buffers = faced(20.0, decision_every=3)
    masks = np.zeros((2, 8), np.bool_)
    turns = []
    for number in range(6):
        duel.action_masks(masks)
        free = number % 3 == 0
        assert masks[HOME].tolist() == [True, *[free] * 2, True, *[free] * 2, True, free]
        mouse = np.array([0, 0, 0, number + 1.0], np.float32)
        step(duel, buffers, mouse, STILL)
        turns.append(float(duel.state.mouse[HOME]))
    assert turns == [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]


def test_loadouts_are_drawn_by_weight_and_alike_for_both_unless_said_otherwise() -> None:
    loadouts = {"sniper": {"gun_cooldown": 1.5, "damage": 3.0}, "rifle": {"damage": 2.0}}
    for mirrored in (True, False):
        settings = DuelSettings(
            num_envs=400,
            loadouts=loadouts,
            loadout={"sniper": 3.0, "rifle": 1.0},
            mirrored_loadouts=mirrored,
            observed_parameters=("damage",),
        )
        duel, buffers = begun(settings, scenario())
        damage = duel.state.traits[:, OF_SEATS.index("damage")].reshape(2, -1)
        assert 0.6 < (damage == 3.0).mean() < 0.9
        assert (damage[0] == damage[1]).all() == mirrored
        own = duel.spec.observation_names.index("own_damage")
        shown = buffers.observations[:, [own, own + 1]].reshape(2, -1, 2)
        share = damage / (damage + 1.0)
        np.testing.assert_allclose(shown[0], np.stack(share, axis=1), rtol=1e-6)
        np.testing.assert_allclose(shown[1], np.stack(share[::-1], axis=1), rtol=1e-6)


@pytest.mark.parametrize("start", ["mirrored", "free"])
def test_starts_are_free_far_apart_and_out_of_sight_from_difficulty_two_on(start) -> None:
    for level in range(1, 6):
        duel, buffers = begun(DuelSettings(num_envs=100, start=start), scenario(level))
        seats = duel.state.seats
        home, away = seats.position[:100], FLOOR_SIZE - seats.position[100:]
        assert (np.hypot(*(home - away).T) >= 8.0).all()
        assert (seats.position[:100] == seats.position[100:]).all() == (start == "mirrored")
        if start == "mirrored":
            assert (np.abs(seats.yaw) <= math.pi / 2).all()
            assert (seats.position[:, 1] <= FLOOR_SIZE / 2 - 4).all()
        tags = [name.endswith("_tag") for name in duel.spec.observation_names]
        assert (buffers.observations[:, tags] == 2.0).any() == (level == 1)


def test_a_layouts_own_start_is_taken_where_no_drawn_one_fits() -> None:
    boxes = (0.0, 6.0, 30.0, 24.0), (0.0, 0.0, 13.0, 6.0)
    duel = Duel(DuelSettings(num_envs=2), everywhere(boxes))
    duel.tables.layouts.boxes[:, 0] = [0.0, 0.0, 30.0, 6.0]  # nowhere is free
    reset(duel, scenario())
    assert duel.state.seats.position.tolist() == [[15.0, 3.0]] * 4
    assert not duel.state.seats.yaw.any()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"no_such": 1.0}, "no parameter 'no_such'"),
        ({"time_limit": 31.0}, "must not exceed env.time_limit"),
        ({"agent_radius": 0.6}, "must lie between 0.05 and 0.5"),
        ({"away.decision_every": 1.5}, "must be a whole number"),
    ],
)
def test_parameters_that_a_duel_lacks_or_does_not_take_are_refused(given, told) -> None:
    duel = Duel(DuelSettings(num_envs=1))
    with pytest.raises(ConfigurationError, match=told):
        duel.set_scenario(Scenario({"duel": 1.0}, parameters=given))
    assert duel.scenario_number == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"loadout": {"a": 1.0}}, "there is no loadout 'a'; there are none"),
        ({"loadouts": {"a": {"damage": 0.0}}}, "a: damage must lie between 1 and 100"),
        ({"loadouts": {"a": {"damage": 1.0}}, "loadout": {"a": 0.0}}, "must be above 0"),
        ({"observed_parameters": ("time_limit",)}, "no parameter 'time_limit'"),
        ({"observed_parameters": ("health", "health")}, "each can be named once"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(given, told) -> None:
    with pytest.raises(ValueError, match=told):
        DuelSettings(**given)


def test_a_snapshot_of_other_settings_or_with_values_that_never_are_is_refused() -> None:
    duel, _ = begun(DuelSettings(num_envs=2), scenario())
    kept = duel.snapshot()
    other, _ = begun(DuelSettings(num_envs=2, on_timeout="health"), scenario())
    with pytest.raises(MisuseError, match="on_timeout is 'health'"):
        duel.restore(other.snapshot())
    for name, value in (("layout", 99), ("health", 9), ("seats.enemy_count", 2), ("loadout", 0)):
        broken = {**kept, name: np.full_like(kept[name], value)}
        with pytest.raises(MisuseError, match=f"snapshot: {name.split('.')[-1]}|{name}|health"):
            duel.restore(broken)

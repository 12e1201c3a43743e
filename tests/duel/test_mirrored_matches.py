"""Matches whose both seats are the learner's, and past selves in the others."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.world_type import DUEL

MATCHES, MIRRORED = 8, 3


class Turning:
    """Opponents that play every match of kind self by turning, and note what they are told."""

    needs_masks = True

    def __init__(self) -> None:
        self.seated: list[tuple[int, str]] = []
        self.results: list[tuple[int, float]] = []
        self._plays = np.zeros(0, np.bool_)

    def begin(self, matches: int) -> None:
        self._plays = np.zeros(matches, np.bool_)

    def seat(self, matches: np.ndarray, kinds: Sequence[str]) -> None:
        self.seated += zip(matches.tolist(), kinds, strict=True)
        self._plays[matches] = [kind == "self" for kind in kinds]

    def act(self, observations: np.ndarray, masks: np.ndarray, actions: np.ndarray) -> None:
        assert masks.any(axis=1)[MIRRORED:].all()
        actions[self._plays, 3] = 2.0

    def ended(self, matches: np.ndarray, scores: np.ndarray) -> None:
        self.results += zip(matches.tolist(), scores.tolist(), strict=True)

    def state(self) -> dict[str, Any]:
        return {}

    def resume(self, state: Mapping[str, Any]) -> None:
        pass


def self_played(targets: dict[str, float], **settings: Any) -> tuple[OpposedWorld, Turning, Any]:
    opponents = Turning()
    chosen = DUEL.self_play_settings(DuelSettings(num_envs=MATCHES, **settings), 3 / 8)
    world = DUEL.make_opposed(chosen, opponents)
    world.set_scenario(Scenario(targets))
    buffers = step_buffers(world)
    world.reset(3, buffers.observations)
    return world, opponents, buffers


def test_rows_are_the_home_seats_and_the_away_seats_of_mirrored_matches() -> None:
    world, _, buffers = self_played({"self": 1.0})
    assert DUEL.rows(world.settings) == world.num_envs == MATCHES + MIRRORED
    duel = Duel(DuelSettings(num_envs=MATCHES))
    duel.set_scenario(Scenario({"duel": 1.0}))
    others = step_buffers(duel)
    duel.reset(3, others.observations)
    moves = np.zeros((2 * MATCHES, 4), np.float32)
    moves[: MATCHES + MIRRORED, 0] = 1.0
    moves[MATCHES + MIRRORED :, 3] = 2.0
    for _ in range(4):
        world.step(moves[: world.num_envs], buffers)
        duel.step(moves, others)
        np.testing.assert_array_equal(buffers.observations, others.observations[:11])
        np.testing.assert_array_equal(buffers.rewards, others.rewards[:11])


def test_mirrored_matches_count_for_no_lesson_and_are_zero_sum() -> None:
    world, opponents, buffers = self_played({"still": 1.0, "self": 1.0}, time_limit=0.3)
    for _ in range(3):
        batch = world.step(np.ones((11, 4), np.float32), buffers)
    assert sorted(batch.row) == list(range(11))
    own = (batch.row < MIRRORED) | (batch.row >= MATCHES)
    assert (batch.scenario[own] == 0).all()
    assert (batch.scenario[~own] == world.scenario_number).all()
    assert {cell.target for cell, mine in zip(batch.cell, own, strict=True) if mine} == {"self"}
    np.testing.assert_array_equal(buffers.rewards[:MIRRORED], -buffers.rewards[MATCHES:])
    assert (batch.running_scenario[:MIRRORED] == 0).all()
    assert (batch.running_scenario[MATCHES:] == 0).all()
    assert len(set(batch.order.tolist())) == 11
    assert sorted(opponents.results) == [(match, 0.5) for match in range(MIRRORED, MATCHES)]


def test_opponents_change_only_where_a_match_begins_and_are_told_of_scripts_too() -> None:
    world, opponents, buffers = self_played({"still": 1.0, "self": 1.0}, time_limit=0.3)
    assert [match for match, _ in opponents.seated] == list(range(MIRRORED, MATCHES))
    assert {kind for _, kind in opponents.seated} == {"still", "self"}
    before = world.duel.state.seats.yaw[MATCHES:].copy()
    world.step(np.zeros((11, 4), np.float32), buffers)
    turned = world.duel.state.seats.yaw[MATCHES:] != before
    for match, kind in opponents.seated:
        assert turned[match] == (kind == "self")
    for _ in range(2):
        world.step(np.zeros((11, 4), np.float32), buffers)
    assert len(opponents.seated) == 2 * (MATCHES - MIRRORED)


def test_a_world_of_past_selves_takes_these_targets_and_a_plain_one_refuses_them() -> None:
    assert {"self", "reference"} <= set(self_played({"reference": 1.0})[0].spec.targets)
    with pytest.raises(ConfigurationError, match="no target 'self'; there are still, random"):
        OpposedWorld(DuelSettings(num_envs=1, learner="home")).set_scenario(Scenario({"self": 1.0}))

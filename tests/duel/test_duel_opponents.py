"""Home against scripted players and past selves: who sits opposite, and who wins.

And matches whose both seats are the learner's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from duel_stage import reset

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.duel.core.state import HIT
from aimbot_lab.worlds.duel.core.state import SCRIPTS as OPPONENTS
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.world_type import DUEL
from aimbot_lab.worlds.registry import make_world, spec_of

ALL = Scenario(dict.fromkeys(OPPONENTS, 1.0))


def opposed(matches: int, drawn: Scenario = ALL, *, seed: int = 3, mirrored: int = 0, **settings):
    duel = DuelSettings(num_envs=matches, learner="home", **settings)
    world = OpposedWorld(duel, mirrored=mirrored)
    return world, reset(world, drawn, seed)


def moves(rows: int, step: int) -> np.ndarray:
    """Actions that depend on row and step alone."""
    drawn = [np.random.default_rng((row, step)) for row in range(rows)]
    made = [[*one.integers(0, (3, 3, 2)), one.uniform(-5, 5)] for one in drawn]
    return np.array(made, np.float32)


def test_the_setting_learner_says_whether_a_duel_has_one_agent_or_two() -> None:
    both, home = DuelSettings(num_envs=2), DuelSettings(num_envs=2, learner="home")
    assert isinstance(make_world(both), Duel)
    assert isinstance(make_world(home), OpposedWorld)
    assert (spec_of(both).agents, tuple(spec_of(both).targets)) == (2, ("duel",))
    assert (spec_of(home).agents, tuple(spec_of(home).targets)) == (1, OPPONENTS)


def test_a_target_that_needs_two_learners_is_refused() -> None:
    world = OpposedWorld(DuelSettings(num_envs=1, learner="home"))
    for target in ("duel", "self", "reference"):
        words = f"no target '{target}'; there are still, random"
        with pytest.raises(ConfigurationError, match=words):
            world.set_scenario(Scenario({target: 1.0}))


def test_opponents_are_drawn_by_the_weights_and_named_in_the_episodes() -> None:
    drawn = Scenario(
        {"still": 3.0, "aimbot": 1.0},
        difficulty={"still": (1, 0, 0, 0, 0), "aimbot": (0, 0, 0, 0, 1)},
    )
    world, buffers = opposed(200, drawn, time_limit=0.2)
    for step in range(2):
        batch = world.step(moves(200, step), buffers)
    names = [cell.target for cell in batch.cell if cell]
    assert 0.65 < names.count("still") / 200 < 0.85
    assert set(batch.cell) == {("still", 1), ("aimbot", 5)}
    assert not batch.agent.any()


def test_each_plays_as_its_kind_does() -> None:
    world, buffers = opposed(80, time_limit=6.0)
    kinds = world.duel.state.kind.copy()
    moved = np.zeros(80)
    for step in range(20):
        before = world.duel.state.seats.position[80:].copy()
        world.step(moves(80, step), buffers)
        moved += np.abs(world.duel.state.seats.position[80:] - before).sum(axis=1) > 1e-9
    first = world.duel.state.episode == 1
    assert (moved[first & (kinds == 1)] == 0).all()  # still
    assert (moved[first & (kinds > 1)] > 5).mean() > 0.9


def test_a_snapshot_without_opponents_and_an_impossible_action_change_nothing() -> None:
    world, buffers = opposed(2)
    kept = world.snapshot()
    with pytest.raises(MisuseError, match=r"opponents\.keys is missing"):
        world.restore({k: v for k, v in kept.items() if k != "opponents.keys"})
    with pytest.raises(MisuseError, match=r"opponents\.memory holds what is not finite"):
        world.restore({**kept, "opponents.memory": np.full_like(kept["opponents.memory"], np.nan)})
    wrong = np.zeros((2, 4), np.float32)
    wrong[1, 3] = np.inf
    with pytest.raises(ActionError, match=r"environment 1: mouse is inf.*\(agent home\)"):
        world.step(wrong, buffers)
    for name, array in world.snapshot().items():
        np.testing.assert_array_equal(array, kept[name], err_msg=name)
    # In a mirrored match the agent that made it is named.
    world, buffers = opposed(3, mirrored=2)
    wrong = np.zeros((5, 4), np.float32)
    wrong[4, 3] = np.nan
    with pytest.raises(ActionError, match=r"environment 1: mouse is nan.*\(agent away\)"):
        world.step(wrong, buffers)


ROWS, DECISIONS = 128, 300
RUNNING = 9


class Played(NamedTuple):
    """First matches of home against away."""

    wins: int
    losses: int
    first_hit: float  # mean decisions until anybody was hit, DECISIONS where nobody was


def played(home: str, away: str, level: int) -> Played:
    weights = tuple(float(level == k) for k in range(1, 6))
    world, buffers = opposed(ROWS, Scenario({away: 1.0}, difficulty={away: weights}), seed=5)
    act = make_players(world.settings)[home](world, 9)
    outcome, hit = np.full(ROWS, RUNNING), np.full(ROWS, DECISIONS)
    for decision in range(DECISIONS):
        batch = world.step(act(buffers.observations, buffers.finished), buffers)
        new = outcome[batch.row] == RUNNING
        outcome[batch.row[new]] = batch.outcome[new]
        anybody = (world.duel.state.shot.reshape(2, ROWS) == HIT).any(axis=0)
        hit[anybody & (hit == DECISIONS) & (outcome == RUNNING)] = decision
    return Played(int((outcome == 1).sum()), int((outcome == -1).sum()), float(hit.mean()))


@pytest.mark.parametrize(
    ("home", "away", "level"),
    [
        ("random", "still", 1),
        ("greedy", "random", 1),
        ("aimbot", "greedy", 1),
        ("aimbot", "greedy", 5),
    ],
)
def test_each_player_beats_the_one_before_it_by_more_than_luck(
    home: str, away: str, level: int
) -> None:
    """Wins exceed losses by more than 1.645 standard deviations of a fair coin: 5 % level."""
    found = played(home, away, level)
    assert found.wins - found.losses > 1.645 * np.sqrt(found.wins + found.losses), found


def test_the_first_hit_between_two_aimbots_comes_later_from_difficulty_to_difficulty() -> None:
    times = [played("aimbot", "aimbot", level).first_hit for level in (1, 3, 5)]
    assert times == sorted(times), times
    assert times[-1] > 5 * times[0]


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
    return world, opponents, reset(world, Scenario(targets))


def test_rows_are_the_home_seats_and_the_away_seats_of_mirrored_matches() -> None:
    world, _, buffers = self_played({"self": 1.0})
    assert DUEL.rows(world.settings) == world.num_envs == MATCHES + MIRRORED
    duel = Duel(DuelSettings(num_envs=MATCHES))
    others = reset(duel, Scenario({"duel": 1.0}), 3)
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


def test_a_world_of_past_selves_takes_these_targets() -> None:
    assert {"self", "reference"} <= set(self_played({"reference": 1.0})[0].spec.targets)

"""Home against scripted players: who sits opposite, and that they stand in an order."""

from typing import NamedTuple

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.duel.core.state import HIT
from aimbot_lab.worlds.duel.core.state import SCRIPTS as OPPONENTS
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.registry import make_world, spec_of

ALL = Scenario(dict.fromkeys(OPPONENTS, 1.0))


def opposed(matches: int, drawn: Scenario = ALL, seed: int = 3, **settings):
    world = OpposedWorld(DuelSettings(num_envs=matches, learner="home", **settings))
    world.set_scenario(drawn)
    buffers = step_buffers(world)
    world.reset(seed, buffers.observations)
    return world, buffers


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


@pytest.mark.parametrize("target", ["duel", "self", "reference"])
def test_a_target_that_needs_two_learners_is_refused(target: str) -> None:
    world = OpposedWorld(DuelSettings(num_envs=1, learner="home"))
    with pytest.raises(ConfigurationError, match=f"no target '{target}'; there are still, random"):
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


def test_an_impossible_action_in_a_mirrored_match_names_the_agent_that_made_it() -> None:
    world = OpposedWorld(DuelSettings(num_envs=3, learner="home"), mirrored=2)
    world.set_scenario(ALL)
    buffers = step_buffers(world)
    world.reset(1, buffers.observations)
    wrong = np.zeros((5, 4), np.float32)
    wrong[4, 3] = np.nan
    with pytest.raises(ActionError, match=r"environment 1: mouse is nan.*\(agent away\)"):
        world.step(wrong, buffers)


MATCHES, DECISIONS = 128, 300
RUNNING = 9


class Played(NamedTuple):
    """First matches of home against away."""

    wins: int
    losses: int
    first_hit: float  # mean decisions until anybody was hit, DECISIONS where nobody was


def played(home: str, away: str, level: int) -> Played:
    settings = DuelSettings(num_envs=MATCHES, learner="home")
    world = OpposedWorld(settings)
    weights = tuple(float(level == k) for k in range(1, 6))
    world.set_scenario(Scenario({away: 1.0}, difficulty={away: weights}))
    buffers = step_buffers(world)
    world.reset(5, buffers.observations)
    act = make_players(settings)[home](world, 9)
    outcome, hit = np.full(MATCHES, RUNNING), np.full(MATCHES, DECISIONS)
    for decision in range(DECISIONS):
        batch = world.step(act(buffers.observations, buffers.finished), buffers)
        new = outcome[batch.row] == RUNNING
        outcome[batch.row[new]] = batch.outcome[new]
        anybody = (world.duel.state.shot.reshape(2, MATCHES) == HIT).any(axis=0)
        hit[anybody & (hit == DECISIONS) & (outcome == RUNNING)] = decision
    return Played(int((outcome == 1).sum()), int((outcome == -1).sum()), float(hit.mean()))


def assert_better(found: Played) -> None:
    """Wins exceed losses by more than 1.645 standard deviations of a fair coin: 5 % level."""
    assert found.wins - found.losses > 1.645 * np.sqrt(found.wins + found.losses), found


@pytest.mark.parametrize("pair", [("random", "still"), ("greedy", "random")])
def test_each_player_beats_the_one_before_it_in_the_open_hall(pair: tuple[str, str]) -> None:
    assert_better(played(*pair, level=1))


@pytest.mark.parametrize("level", [1, 5])
def test_the_aimbot_beats_the_greedy_player_wherever_they_meet(level: int) -> None:
    assert_better(played("aimbot", "greedy", level))


def test_the_first_hit_between_two_aimbots_comes_later_from_difficulty_to_difficulty() -> None:
    times = [played("aimbot", "aimbot", level).first_hit for level in (1, 3, 5)]
    assert times == sorted(times), times
    assert times[-1] > 5 * times[0]

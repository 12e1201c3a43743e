"""Win rates from episodes, with a world whose outcomes are known beforehand."""

from dataclasses import replace

import numpy as np
import pytest
from known_world import LOSE, WIN, Episode, KnownWorld, idle, result

from aimbot_lab.evaluation.episodes import (
    CellEpisodes,
    cell_scenario,
    evaluation_seed,
    play,
    score_all,
    score_cell,
)
from aimbot_lab.foundation.episodes import Cell, UnparsedLineError, wilson
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, Scenario, closing
from aimbot_lab.foundation.world_type import Act
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.registry import make_world, rows_for
from tests.worlds.walkers import walkers


def score(world: BatchWorld, act: Act = idle):
    return score_cell(play(world, act, Cell("goto", 2), seed=11))


def test_every_row_counts_once_however_soon_it_ends() -> None:
    """The quick rows win hundreds of episodes while the last row loses its one."""
    quick = [Episode(1, WIN)]
    found = score(KnownWorld([quick, quick, [Episode(500, LOSE)]]))
    assert (found.episodes, found.wins) == (3, 2)
    assert found.win_rate == pytest.approx(2 / 3)
    assert (found.lower, found.upper) == wilson(2, 3)[1:]
    assert score(KnownWorld([[Episode(4, WIN)]] * 5)).wins == 5  # that end in the same step


def test_only_the_first_episode_of_a_row_counts() -> None:
    plays = [
        [Episode(2, LOSE), Episode(1, WIN)],
        [Episode(3, LOSE), Episode(1, WIN)],
        [Episode(4, WIN), Episode(1, LOSE)],
        [Episode(9, LOSE)],
    ]
    assert score(KnownWorld(plays)).wins == 1


def test_an_episode_that_does_not_end_is_reported_and_not_waited_for() -> None:
    plays = [[Episode(1, WIN)], [Episode(10**9, WIN)]]
    with pytest.raises(RunFailedError) as caught:
        score(KnownWorld(plays))
    assert str(caught.value) == (
        "1 of 2 episodes of goto 2 did not end within 30,000 steps: give the world a limit, or "
        "raise this one with --max-steps or evaluation.max_steps"
    )
    world = KnownWorld(plays)
    world.spec = replace(world.spec, max_steps=50)
    with pytest.raises(RunFailedError, match="within 100 steps"):  # twice what the world says
        score(world)


def test_a_limit_counts_the_steps_of_an_episode() -> None:
    cell, plays = Cell("goto", 2), [[Episode(40, WIN)], [Episode(3, LOSE)]]
    assert play(KnownWorld(plays), idle, cell, seed=1, max_steps=40).won.sum() == 1
    with pytest.raises(
        RunFailedError, match="1 of 2 episodes of goto 2 did not end within 39 steps"
    ):
        play(KnownWorld(plays), idle, cell, seed=1, max_steps=39)


def pushed(observations: np.ndarray, _starts: np.ndarray) -> np.ndarray:
    """To where the pole falls, so badly that episodes are of many lengths."""
    return (observations[:, 2:3] > 0.01).astype(np.float32)


def towards(observations: np.ndarray, _starts: np.ndarray) -> np.ndarray:
    return (1 + (observations[:, 0:1] < observations[:, 1:2])).astype(np.float32)


@pytest.mark.parametrize("kind", ["gymnasium", "pettingzoo"])
def test_episodes_are_the_same_in_as_few_copies_of_an_environment_as_there_may_be(
    kind: str,
) -> None:
    def played(rows: int, episodes: int | None = None) -> CellEpisodes:
        if kind == "pettingzoo":
            world, act = walkers(rows=rows, win={"info": "is_success"}), towards
        else:
            settings = GymnasiumSettings(
                id="CartPole-v1", num_envs=rows, win=WinRule(length_above=60)
            )
            world, act = make_world(settings), pushed
        with closing(world):
            return play(world, act, Cell("task", 0), seed=3, episodes=episodes)

    usual = played(9)
    assert len(set(usual.starts)) > 3
    assert len(set(usual.seconds)) > 1
    for rows in (1, 4, 8):
        found = played(rows, 9)
        assert found.starts == usual.starts
        for name in ("won", "seconds", "returns", "drawn"):
            np.testing.assert_array_equal(getattr(found, name), getattr(usual, name), name)


def test_one_copy_is_not_waited_for_without_end() -> None:
    settings = GymnasiumSettings(id="CartPole-v1", num_envs=1)
    with (
        closing(make_world(settings)) as world,
        pytest.raises(RunFailedError, match=r"^3 of 3 episodes of task did not end within 2 steps"),
    ):
        play(world, pushed, Cell("task", 0), seed=3, episodes=3, max_steps=2)


def test_agents_are_judged_in_a_row_for_each_episode_unless_settings_say_fewer() -> None:
    assert rows_for(GymnasiumSettings(id="CartPole-v1", num_envs=2), 30) == 30
    assert rows_for(GymnasiumSettings(id="CartPole-v1", num_eval_envs=2), 30) == 2
    assert rows_for(GymnasiumSettings(id="CartPole-v1", num_eval_envs=64), 30) == 30
    assert rows_for(ArenaSettings(num_envs=2), 30) == 30


def test_a_column_called_seconds_is_not_time_unless_the_spec_says_so() -> None:
    world = KnownWorld([[Episode(7, result(won=True, seconds=2.0, value=10.0))]])
    assert score(world).median_seconds_to_win == 2.0
    world.spec = replace(world.spec, time_column=None, decision_seconds=0.5)
    assert score(world).median_seconds_to_win == 0.5  # a decision, of half a second


def test_time_to_win_is_the_median_of_won_episodes_and_the_return_the_mean_of_all() -> None:
    plays = [
        [Episode(1, result(won=True, seconds=2.0, value=10.0))],
        [Episode(2, result(won=True, seconds=4.0, value=20.0))],
        [Episode(2, result(won=True, seconds=21.0, value=30.0))],
        [Episode(3, result(won=False, seconds=30.0, value=-100.0))],
    ]
    found = score(KnownWorld(plays))
    assert found.median_seconds_to_win == pytest.approx(4.0)
    assert found.mean_return == pytest.approx(-10.0)
    lost = score(KnownWorld([[Episode(1, LOSE)]]))
    assert (lost.wins, lost.win_rate, lost.median_seconds_to_win) == (0, 0.0, None)


def test_cells_together_weigh_by_their_episodes() -> None:
    cells = [Cell("goto", 1), Cell("goto", 2)]
    worlds = [KnownWorld([[Episode(1, line)]] * 4) for line in (WIN, LOSE)]
    played = [play(w, idle, cell, seed=1) for w, cell in zip(worlds, cells, strict=True)]
    found = score_all(played)
    assert (found.episodes, found.wins, found.win_rate) == (8, 4, 0.5)
    assert (found.lower, found.upper) == wilson(4, 8)[1:]


def test_every_player_of_a_cell_meets_the_same_seed_and_scenario() -> None:
    world = KnownWorld([[Episode(1, WIN)]])
    cells = [Cell("goto", 1), Cell("goto", 3), Cell("free", 0)]
    for _player in range(2):
        for cell in cells:
            play(world, idle, cell, seed=11, parameters={"move_speed": 4.0})
    scenarios = [
        Scenario({"goto": 1.0}, {"goto": (1.0, 0.0, 0.0)}, {"move_speed": 4.0}),
        Scenario({"goto": 1.0}, {"goto": (0.0, 0.0, 1.0)}, {"move_speed": 4.0}),
        Scenario({"free": 1.0}, {}, {"move_speed": 4.0}),
    ]
    assert world.scenarios == scenarios * 2
    assert world.seeds[:3] == world.seeds[3:]
    assert len(set(world.seeds)) == len(cells)


@pytest.mark.parametrize("seed", [0, 2**70])
def test_no_training_can_be_given_the_seed_of_an_evaluation(seed: int) -> None:
    """Seeds of trainings are derived, and derived seeds are 32 bits wide."""
    assert evaluation_seed(seed, Cell("goto", 1)) >= 2**32 > derive_seed(seed, "world")


def test_more_episodes_only_add_to_those_there_were() -> None:
    cell = Cell("goto", 1)

    def beginnings(num_envs: int, rays: RaySettings) -> np.ndarray:
        world = Arena(ArenaSettings(num_envs=num_envs, rays=rays))
        world.set_scenario(cell_scenario(cell, 5))
        observations = np.zeros((num_envs, len(world.spec.observation_names)), np.float32)
        world.reset(evaluation_seed(3, cell), observations)
        state = world.state
        placed = state.position, state.yaw, state.enemies, state.block, state.fire_base
        return np.column_stack([part.reshape(num_envs, -1) for part in placed])

    few, many = beginnings(4, RaySettings()), beginnings(16, RaySettings(tags="one_hot"))
    np.testing.assert_array_equal(few, many[:4])
    assert len(np.unique(many, axis=0)) == 16


def test_the_agent_acts_on_the_newest_observation() -> None:
    world = KnownWorld([[Episode(4, WIN)], [Episode(2, LOSE)]])
    score(world, lambda observations, starts: observations.copy())
    assert world.actions == [[step, step] for step in (0.0, 1.0, 2.0, 3.0)]


@pytest.mark.parametrize("line", ["Warning|Result|Lose|seconds=long", "Warning|Command"])
def test_a_line_that_is_no_result_is_an_error_and_not_a_loss(line: str) -> None:
    with pytest.raises(UnparsedLineError):
        score(KnownWorld([[Episode(1, WIN)], [Episode(2, line)]]))

"""Recall: the agent is held while it sees the FireBase, which is hidden from then on."""

from dataclasses import replace

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play, row_digests, uniform

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena import allocate
from aimbot_lab.worlds.arena.arena import row_of, solo_settings
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.display import ArenaReplayRow
from aimbot_lab.worlds.arena.spec import FIRED

ROWS, HELD = 16, 10  # decisions of a second
FIRE_BASE = slice(1, 6)  # columns: centre, diameter, whether the agent is in it
SHOOTING = (1.0, 1.0, 1.0, 3.0)
GOALS = {"goto": 1.0, "attack": 1.0}


def recalling(seconds: float = 1.0, seed: int = 1, **settings) -> Stage:
    return new_stage(Scenario(GOALS), seed, num_envs=ROWS, recall_seconds=seconds, **settings)


def with_parameter(value, seed: int = 3) -> Stage:
    scenario = replace(ALL_TARGETS, parameters={"recall_seconds": value})
    return new_stage(scenario, seed, num_envs=ROWS)


def test_a_last_observation_hides_it_and_a_stack_shows_it_as_long_as_it_reaches() -> None:
    stage = recalling(time_limit=3.0, stacked_vectors=3)
    width = stage.buffers.observations.shape[1] // 3
    for decision in range(1, 30):
        stage.repeat(0.0, 0.0, 0.0, 0.0)
        for age in range(3):
            newest = stage.buffers.observations[:, (2 - age) * width :]
            assert newest[:, FIRE_BASE].any() == (0 <= decision - age < HELD)
    stage.repeat(0.0, 0.0, 0.0, 0.0)
    assert stage.buffers.finished.all()
    assert not stage.buffers.final_observations[:, 2 * width :][:, FIRE_BASE].any()
    assert stage.buffers.observations[:, 2 * width :][:, FIRE_BASE].any(axis=1).all()


@pytest.mark.parametrize(("seconds", "decisions"), [(0.04, 1), (0.7, 7), (0.71, 8)])
def test_an_agent_is_held_as_long_as_fewer_seconds_than_that_have_passed(
    seconds: float, decisions: int
) -> None:
    stage = recalling(seconds)
    before = stage.arena.state.yaw.copy()
    for _ in range(decisions):
        stage.repeat(*SHOOTING)
    np.testing.assert_array_equal(stage.arena.state.yaw, before)
    stage.repeat(*SHOOTING)
    assert (stage.arena.state.yaw != before).all()


def test_with_0_seconds_nothing_differs_to_the_bit() -> None:
    play = random_play(80, ROWS, seed=5)
    plain = row_digests(with_parameter(0.0), play)
    may_recall = with_parameter(uniform(0.0, 0.0))
    assert may_recall.arena.tables.recalls
    assert row_digests(may_recall, play) == plain
    assert row_digests(with_parameter(0.3), play) != plain


def test_running_episodes_keep_to_it_when_a_scenario_without_it_comes_into_force() -> None:
    stage = new_stage(Scenario(GOALS, parameters={"recall_seconds": 1.0}), 1, num_envs=ROWS)
    stage.arena.set_scenario(Scenario(GOALS))
    kept, other = stage.arena.snapshot(), recalling(0.0)
    other.arena.restore(kept)
    for one in (stage, other):
        yaw = one.arena.state.yaw.copy()
        one.repeat(*SHOOTING)
        np.testing.assert_array_equal(one.arena.state.yaw, yaw)


def test_a_replayed_episode_is_held_and_shows_no_shot_meanwhile() -> None:
    stage = new_stage(Scenario(GOALS, parameters={"recall_seconds": 0.5}), 1, num_envs=ROWS)
    settings = solo_settings(stage.arena.settings)
    row = ArenaReplayRow(settings, row_of(stage.arena.state, 3))
    actions, fired = np.array([SHOOTING], np.float32), []
    buffers = new_stage(Scenario(GOALS), num_envs=1).buffers
    for _ in range(6):
        scene, _ = row.decide(actions, buffers)
        fired.append(scene.events[FIRED])
    assert fired == [0, 0, 0, 0, 0, 1]


def as_written_before(kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A snapshot, or a row, as arenas wrote it that did not know the last parameter.

    Where that is a reward's weight, they did not sum its term either.
    """
    older = {**kept, "parameters": kept["parameters"][:, :-1]}
    if core.PARAMETERS[-1].startswith("rewards."):
        older["terms"] = np.delete(kept["terms"], core.TERM_OF[-1], axis=1)
    for name, array in kept.items():
        if name.startswith("scenario_tables.") and array.shape[:1] == (len(core.PARAMETERS),):
            older[name] = array[:-1]
    return older


def test_a_snapshot_of_before_is_carried_on_from_bit_for_bit() -> None:
    stage = new_stage(ALL_TARGETS, 9, num_envs=8)
    kept, play = stage.arena.snapshot(), random_play(60, 8)
    older = as_written_before(kept)
    shorter = {name for name, array in kept.items() if older[name].shape != array.shape}
    assert "parameters" in shorter
    assert any(name.startswith("scenario_tables.") for name in shorter)
    assert not any(line.startswith("recall") for line in kept["fits"])
    digests = row_digests(stage, play)
    stage.arena.set_scenario(replace(ALL_TARGETS, parameters={"recall_seconds": 2.0}))
    stage.arena.restore(older)
    for name, array in stage.arena.snapshot().items():
        np.testing.assert_array_equal(array, kept[name], err_msg=name)
    assert row_digests(stage, play) == digests


def test_a_row_of_a_replay_of_before_is_played_as_it_was() -> None:
    stage = new_stage(ALL_TARGETS, 9, num_envs=8)
    row = row_of(stage.arena.state, 2)
    settings, starts = solo_settings(stage.arena.settings), (row, as_written_before(row))
    rows = [ArenaReplayRow(settings, start) for start in starts]
    buffers = new_stage(ALL_TARGETS, num_envs=1).buffers
    for actions in random_play(20, 1, seed=6):
        one, other = (each.decide(actions, buffers)[0] for each in rows)
        for a, b in zip(one.trajectory, other.trajectory, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_a_state_of_before_a_term_and_a_count_lacks_is_zero(monkeypatch) -> None:
    """As if a reward term and a count had been added after it, which has a count already."""
    terms, parameters = len(core.REWARD_TERMS), len(core.PARAMETERS)
    monkeypatch.setattr(allocate, "PARAMETERS", (*core.PARAMETERS, "rewards.idle"))
    monkeypatch.setattr(allocate, "REWARD_TERMS", (*core.REWARD_TERMS, "idle"))
    monkeypatch.setattr(allocate, "TERM_OF", np.append(core.TERM_OF, terms))
    monkeypatch.setattr(allocate, "SUMS", terms + 3)
    monkeypatch.setattr(core, "COUNT", (terms + 1, terms + 2))
    older = {"parameters": np.ones((2, parameters)), "terms": np.full((2, terms + 1), 3.0)}
    newer = allocate.with_new_columns(older)
    np.testing.assert_array_equal(newer["parameters"], [[1.0] * parameters + [0.0]] * 2)
    np.testing.assert_array_equal(newer["terms"], [[3.0] * terms + [0.0, 3.0, 0.0]] * 2)
    damaged = {**older, "terms": np.zeros((2, terms + 4))}
    assert allocate.with_new_columns(damaged) is damaged

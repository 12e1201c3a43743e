"""A row by itself plays as it did in its batch, and what plays otherwise is refused."""

from dataclasses import replace

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.settings import Uniform
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.replay.episode import (
    ReplayError,
    RowRecorder,
    as_replay,
    replay_steps,
    summarize,
    trajectory_sha256,
    verify,
)
from aimbot_lab.worlds.arena.arena import Arena, row_of, solo_arena
from aimbot_lab.worlds.arena.display import action_words
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import FIRED, HIT
from tests.replay.recorded_episodes import played, replay_of


def test_the_last_moment_shows_how_it_ended_not_what_came_next() -> None:
    *_, last = replay_steps(replay_of("goto", goto_win_radius=20.0).episode)
    state = last.scene.state[0]
    away = np.linalg.norm(state.fire_base[0, :2] - state.position[0])
    assert last.line is not None
    assert "Win" in last.line
    assert away <= 20.0


def test_what_each_decision_earned_adds_up() -> None:
    shown = [(m.earned, m.scene.terms) for m in replay_steps(replay_of("free").episode)]
    np.testing.assert_allclose(sum(earned for earned, _ in shown), shown[-1][1])


def test_every_hit_is_seen_and_was_a_shot() -> None:
    seen = played("free", rows=4)
    for episode in (one.episode for one in seen):
        told = summarize(as_replay(episode, {}))
        assert told.events[HIT] <= told.events[FIRED]
        assert told.events[HIT] * 25.0 == told.reward_terms.get("target_hit", 0.0)
        assert told.won == (told.events[HIT] == 6)


def test_other_actions_or_another_beginning_are_another_trajectory() -> None:
    replay = replay_of("goto")
    actions = replay.episode.actions.copy()
    actions[0, 3] *= 0.5
    start = {**replay.episode.start, "yaw": replay.episode.start["yaw"] + 1e-9}
    for other in (replace(replay.episode, actions=actions), replace(replay.episode, start=start)):
        with pytest.raises(ReplayError, match="another episode than was recorded"):
            verify(replace(replay, episode=other))


def test_a_replay_that_stops_before_its_end_or_goes_on_after_it_is_refused() -> None:
    episode = replay_of("goto").episode
    for end in (-1, 1):
        with pytest.raises(ReplayError, match="goes on after"):
            trajectory_sha256(replace(episode, actions=episode.actions[:end]))
    with pytest.raises(ReplayError, match="ends after"):
        trajectory_sha256(replace(episode, actions=np.tile(episode.actions, (2, 1))))


def test_an_action_that_there_is_not_is_refused() -> None:
    episode = replay_of("goto").episode
    actions = episode.actions.copy()
    actions[1, 0] = 7
    with pytest.raises(ReplayError, match="vertical move is 7"):
        trajectory_sha256(replace(episode, actions=actions))


def test_an_episode_under_way_is_not_recorded_as_if_it_began() -> None:
    arena = Arena(ArenaSettings(num_envs=2, time_limit=0.5))
    arena.set_scenario(Scenario({"goto": 1.0}))
    from aimbot_lab.foundation.world import new_step_buffers

    buffers = new_step_buffers(2, len(arena.spec.observation_names))
    arena.reset(1, buffers.observations)
    still = np.zeros((2, 4), np.float32)
    arena.step(still, buffers)
    recorder = RowRecorder(arena, 1)
    recorded = [recorder.add(still, arena.step(still, buffers)) for _ in range(9)]
    found = [episode for episode in recorded if episode is not None]
    assert [len(episode.actions) for episode in found] == [5]


def test_sampled_parameters_need_no_sampler_to_play_again() -> None:
    arena = Arena(ArenaSettings(num_envs=3, time_limit=0.5))
    speed = Uniform(sampler_parameters={"min_value": 1.0, "max_value": 9.0})
    arena.set_scenario(Scenario({"goto": 1.0}, parameters={"move_speed": speed}))
    from aimbot_lab.foundation.world import new_step_buffers

    buffers = new_step_buffers(3, len(arena.spec.observation_names))
    arena.reset(1, buffers.observations)
    ahead = np.tile(np.array([1, 0, 0, 0], np.float32), (3, 1))
    recorder = RowRecorder(arena, 2)
    for _ in range(5):
        before = arena.state.position[2].copy()
        episode = recorder.add(ahead, arena.step(ahead, buffers))
    assert episode is not None
    shown = [step.scene.state[0].position[0].copy() for step in replay_steps(episode)]
    np.testing.assert_array_equal(shown[4], before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("obstacle_count", [99]),
        ("episode", [0]),
        ("position", [[np.nan, 0.0]]),
    ],
)
def test_a_row_that_no_arena_could_have_reaches_no_kernel(name: str, value: list) -> None:
    episode = played("attack", rows=1)[0].episode
    row = {**episode.start, name: np.array(value, episode.start[name].dtype)}
    with pytest.raises(MisuseError, match=f"row: {name}"):
        solo_arena(episode.settings, row)


def test_a_row_of_another_form_reaches_no_kernel() -> None:
    arena = Arena(ArenaSettings(num_envs=2))
    arena.set_scenario(Scenario({"attack": 1.0}))
    arena.reset(1, np.zeros((2, len(arena.spec.observation_names)), np.float32))
    row = row_of(arena.state, 1)
    for name, array in row.items():
        with pytest.raises(MisuseError, match=f"row: {name}"):
            solo_arena(arena.settings, {**row, name: array[:0]})
        with pytest.raises(MisuseError, match=f"row: {name} is missing"):
            solo_arena(arena.settings, {key: row[key] for key in row if key != name})
    with pytest.raises(MisuseError, match="row: more is not an array"):
        solo_arena(arena.settings, {**row, "more": row["yaw"]})


def test_actions_in_words() -> None:
    assert action_words(None, {"shots": 0}) == "begins"
    assert action_words(np.array([0, 0, 1, 0.0]), {"shots": 0}) == "waits"
    words = action_words(np.array([1, 2, 1, -2.5]), {"shots": 1})
    assert words == "forward, left, turns 2.5 left, SHOOTS"

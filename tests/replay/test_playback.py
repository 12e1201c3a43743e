"""Episodes play as they did in their batch, in each world, and what plays otherwise is refused."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import BESIDE, _DrawnRow
from aimbot_lab.foundation.settings import Uniform
from aimbot_lab.foundation.world import Scenario, new_step_buffers, step_buffers
from aimbot_lab.replay.episode import (
    Replay,
    ReplayError,
    RowRecorder,
    as_replay,
    load_replay,
    replay_steps,
    replay_text,
    summarize,
    trajectory_sha256,
    verify,
)
from aimbot_lab.replay.film import FAINT, FrameStyle, colours, frames
from aimbot_lab.replay.terminal import Screen, screens
from aimbot_lab.worlds import registry
from aimbot_lab.worlds.arena.arena import Arena, row_of, solo_arena
from aimbot_lab.worlds.arena.display import action_words
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import FIRED, HIT
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.replay.recorded_episodes import played, replay_of, resealed
from tests.worlds.race import Race
from tests.worlds.recorded_race import RACE, RaceSettings

CARTPOLE = GymnasiumSettings(id="CartPole-v1", num_envs=1, win=WinRule(return_above=475))


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
    ("name", "value"), [("obstacle_count", [99]), ("episode", [0]), ("position", [[np.nan, 0.0]])]
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


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race, as if a package had brought it."""
    known = replace(registry.WORLDS, own={**registry.WORLDS.own, "race": RACE})
    for module in ("worlds.registry", "replay.episode"):
        monkeypatch.setattr(f"aimbot_lab.{module}.WORLDS", known)


def run(runners: int = 1, *, moves: int = 2) -> Replay:
    """A race in which all do `moves` in every step but the others, who stand."""
    world = RACE.make(RaceSettings(num_envs=3, runners=runners))
    world.set_scenario(Scenario({"right": 1.0}))
    buffers = step_buffers(world)
    world.reset(0, buffers.observations)
    recorder, episode = RowRecorder(world, 1), None
    actions = np.ones((3 * runners, 1), np.float32)
    actions[:3] = moves
    while episode is None:
        episode = recorder.add(actions, world.step(actions, buffers))
    return as_replay(episode, {"name": "race"})


@pytest.mark.parametrize("runners", [1, 2])
def test_its_episodes_are_played_again_as_they_were(tmp_path: Path, runners: int) -> None:
    replay = run(runners)
    assert replay.episode.actions.shape == (3, runners)
    (tmp_path / "race.json").write_text(replay_text(replay), encoding="utf-8")
    back = load_replay(tmp_path / "race.json")
    np.testing.assert_array_equal(back.episode.actions, replay.episode.actions)
    *_, last = replay_steps(back.episode)
    assert last.observations.shape == (runners, runners + 1)
    assert last.observations[0, 0] == 3.0
    assert last.rewards.tolist() == [1.0, -1.0][:runners]
    assert back.episode.result.won


def test_its_episodes_are_summed_up_and_told_by_the_names_of_its_actions() -> None:
    told = summarize(run(moves=0)).as_json()
    assert (told["won"], told["target"], told["decisions"]) == (False, "right", 3)
    assert (told["outcome"], told["reward_terms"]) == ("lost", {"end": -1.0})
    shown = list(screens(run(moves=0), Screen(columns=80, lines=24, true_colour=True)))
    assert len(shown) == 4
    assert "begins" in shown[0]
    assert "move 0" in shown[1]
    assert "3.0 s of 12 s" in shown[-1]
    assert "LOST after 3.0 s" in shown[-1]


def test_a_draw_is_neither_won_nor_lost() -> None:
    replay = run(moves=1)
    assert (replay.episode.result.outcome, summarize(replay).outcome) == (0, "drawn")
    *_, shown = screens(replay, Screen(columns=80, lines=24, true_colour=True))
    assert "DRAW after 12.0 s" in shown
    *_, picture = frames(replay, FrameStyle(size=240))
    assert tuple(picture[-2, -2]) == FAINT


def test_its_pictures_are_what_it_draws_beside_the_panel() -> None:
    replay = run()
    bare = list(frames(replay, FrameStyle(size=7, panel=False)))
    assert [int(picture[0, :, 0].argmax()) for picture in bare] == [3, 4, 5, 6]
    beside = list(frames(replay, FrameStyle(size=240)))
    assert {picture.shape for picture in beside} == {(240, 360, 3)}
    assert all((one != other).any() for one, other in pairwise(beside))
    assert colours([replay]) != colours([replay_of("goto")])


def test_a_picture_that_is_no_square_keeps_its_proportions() -> None:
    drawn = np.zeros((20, 30, 3), np.uint8)
    shown = _DrawnRow().picture(SimpleNamespace(state=lambda: drawn), size=60)  # type: ignore[arg-type]
    assert not shown[10:50].any()
    assert (shown[:10] == BESIDE).all()
    assert (shown[50:] == BESIDE).all()


def test_a_beginning_that_does_not_fit_the_world_is_refused() -> None:
    episode = run().episode
    for start in ({}, {"place": np.zeros((2, 1), np.int64)}):
        with pytest.raises(ReplayError, match=r"initial state is invalid: place: must be"):
            as_replay(replace(episode, start=start), {})


def test_a_world_without_replays_is_refused_in_one_line() -> None:
    with pytest.raises(ReplayError, match=r"^this world has no replays: its episodes can't be"):
        RowRecorder(Race(2), 0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"world": "mars"}, "a replay of the world 'mars', which is not installed"),
        ({"world": ["arena"]}, r"a replay of the world \['arena'\], which is not installed"),
        (registry.as_dict(CARTPOLE), "it holds no episode of its world"),
    ],
)
def test_a_file_of_a_world_that_can_not_play_it_is_refused(
    tmp_path: Path, settings: dict, reason: str
) -> None:
    text = resealed(replay_text(run()), settings=settings)
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ReplayError, match=reason):
        load_replay(tmp_path / "x.json")

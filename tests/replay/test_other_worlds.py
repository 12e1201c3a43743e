"""Replays are written against the protocol: another world's are kept, played and shown as well."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from aimbot_lab.foundation.display import BESIDE, _DrawnRow
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.replay import episode
from aimbot_lab.replay.episode import (
    Replay,
    ReplayError,
    RowRecorder,
    as_replay,
    load_replay,
    replay_steps,
    replay_text,
    summarize,
)
from aimbot_lab.replay.film import FAINT, FrameStyle, colours, frames
from aimbot_lab.replay.terminal import Screen, screens
from aimbot_lab.worlds import registry
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.replay.recorded_episodes import replay_of, resealed
from tests.worlds.race import Race
from tests.worlds.recorded_race import RACE, RaceSettings

CARTPOLE = GymnasiumSettings(id="CartPole-v1", num_envs=1, win=WinRule(return_above=475))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race, as if a package had brought it."""
    known = replace(registry.WORLDS, own={**registry.WORLDS.own, "race": RACE})
    for module in (registry, episode):
        monkeypatch.setattr(module, "WORLDS", known)


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

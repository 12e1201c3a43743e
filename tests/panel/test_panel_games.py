"""Games of the page: the test mode and episodes that a person plays."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from panel_server import PanelUnderTest

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import Placement
from aimbot_lab.foundation.episodes import EpisodeBatch, result_line
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.actors import GameActor, find_actor, playable_settings, present_agent
from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame, Keys, SceneGame, played_by
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.replay.episode import load_replay
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.worlds.registry import type_of

SETTINGS = playable_settings()


def actor(key: str) -> GameActor:
    settings = type_of(SETTINGS).settings(num_envs=1)
    make = type_of(settings).baselines(settings).get(key)
    return GameActor(key, settings, make)


def test_a_placed_block_is_won_and_stays_while_the_agent_rests() -> None:
    test = SceneGame(actor("greedy"))
    assert test.game.view.target == "Stay"
    test.place(Placement("enemy", 0, 40.0, 40.0))
    assert test.game.view.target == "Stay", "an enemy assigns nothing"
    test.place(Placement("goto 1", 0, 12.0, 12.0, turns=1))
    assert test.game.view.target == "Goto, difficulty 1"
    lines = [line for _ in range(60) if (line := test.decide()) is not None]
    assert [line.line for line in lines] == ["Warning|Result|Win"]
    assert lines[0].detail.startswith("target=goto, difficulty=1, seconds=")
    assert test.game.view.target == "Stay"
    assert (len(test.game.view.plots), len(test.game.view.bodies)) == (1, 1)


@pytest.mark.parametrize("script", ["greedy", "random"])
def test_a_script_stands_still_in_stay_and_lets_enemies_live_until_free_mode(script: str) -> None:
    test = SceneGame(actor(script))
    test.place(Placement("enemy", 0, 2.0, 8.0))  # right before it
    before = test.game.view
    for _ in range(20):
        assert test.decide() is None
        assert test.game.view == before
        assert not test.game.actions.any()
    test.press("free")
    test.decide()
    assert test.game.actions.any()
    test.press("stay")
    test.decide()
    assert not test.game.actions.any()


def test_an_agent_of_a_run_acts_in_stay_as_it_was_taught() -> None:
    taught = actor("random")._replace(step=1)
    test = SceneGame(taught)
    test.decide()
    assert test.game.view.target == "Stay"
    assert test.game.actions.any()


def test_the_decision_that_wins_is_shown_before_the_rest() -> None:
    test = SceneGame(actor("greedy"))
    test.place(Placement("enemy", 0, 2.0, 12.0))
    test.press("free")
    while test.decide() is None:
        pass
    assert test.game.view.fired
    assert test.game.view.hit == 0
    test.decide()
    assert (test.game.view.target, test.game.view.fired) == ("Stay", False)


def test_undo_goes_back_edit_by_edit() -> None:
    test = SceneGame(actor("person"))
    test.place(Placement("enemy", 0, 40.0, 40.0))
    test.place(Placement("attack 2", 1, 20.0, 20.0))
    full = test.game.view
    test.press("clear")
    assert (test.game.view.boxes, test.game.view.bodies, test.game.view.target) == ((), (), "Stay")
    test.undo()
    assert test.game.view == full
    test.undo()
    assert (len(test.game.view.bodies), test.game.view.target) == (1, "Stay")
    test.undo()
    assert test.game.view.bodies == ()
    with pytest.raises(MisuseError, match="nothing to undo"):
        test.undo()


def test_what_is_refused_is_no_edit_to_undo() -> None:
    test = SceneGame(actor("person"))
    with pytest.raises(MisuseError, match="over the agent"):
        test.place(Placement("enemy", 0, 2.0, 2.0))
    with pytest.raises(MisuseError, match="menu"):
        test.place(Placement("enemy", 7, 20.0, 20.0))
    with pytest.raises(ConfigurationError, match="holds no scene"):
        test.load("goto: {}")
    with pytest.raises(MisuseError, match="nothing to undo"):
        test.undo()


def test_the_persons_mouse_is_bounded_as_the_agents_and_what_is_too_much_is_lost() -> None:
    test = SceneGame(actor("person"))
    limit, radians = test.game.mouse.limit, test.game.mouse.radians
    test.game.keys = Keys(ahead=1, right=-1, attack=False, mouse=100.0)
    test.decide()
    assert test.game.view.yaw == pytest.approx(limit * radians, abs=1e-4)
    assert test.game.frame().mouse == 100.0
    assert test.game.frame().actions == {
        "vertical": 1,
        "horizontal": 2,
        "attack": 0,
        "mouse": limit,
    }
    test.decide()
    assert test.game.view.yaw == pytest.approx(limit * radians, abs=1e-4)


def person_plays(chosen: ChosenEpisode) -> tuple[EpisodeGame, EpisodeBatch]:
    """The episode as a person plays who does by keys and mouse what the script does."""
    game = EpisodeGame(actor("person"), chosen)
    script = actor("greedy").make(game.game.world, 0)
    mouse = 0.0
    while True:
        vertical, _, attack, turn = script(game.game.buffers.observations)[0].tolist()
        mouse += turn
        game.game.keys = Keys(ahead=int(vertical), right=0, attack=bool(attack), mouse=mouse)
        if (batch := game.decide()) is not None:
            return game, batch


@pytest.mark.parametrize(("target", "difficulty"), [("goto", 1), ("attack", 2), ("free", 0)])
def test_a_person_meets_the_episode_that_another_plays_of_the_same_seed(
    target: str, difficulty: int
) -> None:
    chosen = ChosenEpisode(target, difficulty, seed=11)
    _, mine = person_plays(chosen)
    other = played_by(actor("greedy"), chosen)
    assert mine.cell == other.cell
    assert mine.cell[0].target == target
    assert mine.cell[0].difficulty == difficulty
    assert mine.outcome[0] == other.outcome[0]
    assert abs(int(mine.length[0]) - int(other.length[0])) <= 3  # its mouse was summed and rounded


def test_a_played_episode_is_an_ordinary_replay(tmp_path: Path) -> None:
    game, batch = person_plays(ChosenEpisode("goto", 1, seed=4))
    file = tmp_path / "mine.json"
    file.write_text(game.replay())
    replay = load_replay(file)
    assert replay.episode.line == result_line(batch, 0)
    assert replay.about["behavior_type"] == "heuristic"
    assert len(replay.episode.actions) == batch.length[0]


def test_the_test_mode_of_the_page(panel: PanelUnderTest) -> None:
    with panel.page() as page:
        opened = page.ask("test", "choose", actor="person")
        assert [entry["label"] for entry in opened["menu"]][:2] == ["Enemy", "Goto block 1"]
        assert [one["key"] for one in opened["actors"]][:2] == ["person", "script:greedy"]
        wanted = {"key": "goto 1", "variant": 0, "x": 20.0, "z": 20.0, "turns": 1}
        assert page.ask("test", "preview", **wanted) == {"fault": None}
        page.ask("test", "place", **wanted)
        assert "over another block" in page.ask("test", "preview", **wanted)["fault"]
        assert "over another block" in page.refused("test", "place", **wanted)
        seen = page.wait_for("test", "frame", lambda body: body["view"]["plots"])
        assert seen["view"]["plots"] == [[15.0, 15.0, 25.0, 25.0]]
        page.ask("test", "pause", paused=True)
        before = page.ask("test", "save_scene", name="mine")["text"]
        page.ask("test", "press", button="clear")
        page.ask("test", "load_scene", text=before)
        assert page.ask("test", "save_scene", name="mine")["text"] == before
        page.ask("test", "undo")
        assert "blocks: []" in page.ask("test", "save_scene", name="mine")["text"]
        assert "line" not in page.refused("test", "load_scene", text="scene: [")
        page.ask("test", "save_agent")
        assert page.wait_for("test", "line") == {
            "line": "Warning|Command",
            "detail": "",
            "words": "",
        }
        page.ask("test", "step")
        again = page.ask("test", "choose", actor="script:greedy")
        assert again["paused"]
        for body, words in (
            ({"actor": "run:0123"}, "there is no such"),
            ({"actor": "script:nobody"}, "no such script"),
        ):
            assert words in page.refused("test", "choose", **body)
        page.ask("test", "leave")
        assert "no game is open" in page.refused("test", "undo")


def test_the_part_play_begins_an_episode_that_waits_for_its_player(panel: PanelUnderTest) -> None:
    with panel.page() as page:
        wanted = {"target": "", "difficulty": 1, "seed": 3, "beside": "script:greedy"}
        begun = page.ask("play", "begin", **wanted)
        assert begun["targets"] == {"free": 0, "goto": 5, "attack": 5, "duel": 5}
        assert begun["frame"]["view"]["seconds_left"] == 30.0
        assert "has not ended" in page.refused("play", "save_replay")
        page.ask("play", "hold", ahead=1, right=0, attack=False, mouse=0.0)
        page.ask("play", "pause", paused=False)
        moved = page.wait_for("play", "frame", lambda body: body["view"]["z"] > 2.4)
        assert math.isclose(moved["view"]["x"], 2.0)
        page.ask("play", "leave")
        assert "difficulty" in page.refused("play", "begin", **{**wanted, "difficulty": 9})
        assert "there is no such" in page.refused("play", "begin", **{**wanted, "beside": "run:77"})


class FakeLab:
    """A run whose folder holds an agent, in a lab of no other run."""

    data_folder, tracking_uri = None, None
    is_free, saved = False, ()

    def __init__(self, folder: Path) -> None:
        self.run_list, self.loader = self, Loader()
        self.path = folder

    def line(self, run: str) -> object:
        return self if run == "abc" else None

    def find(self, run: str) -> "FakeLab":
        return self


def test_an_agent_acts_in_the_world_that_it_learned_in(tmp_path: Path) -> None:
    from aimbot_lab.training.agents.agent_files import save_agent
    from aimbot_lab.training.algorithms.models import new_policy
    from aimbot_lab.training.settings import TrainSettings
    from aimbot_lab.worlds.registry import spec_of

    env = type_of(SETTINGS).settings(num_envs=7, time_limit=9.0)
    train = TrainSettings(network={"layers": (4,)})
    policy = new_policy(train, spec_of(env))
    save_agent(policy, tmp_path / "live" / "agent", env=env, train=train, about={})
    found = find_actor(FakeLab(tmp_path), "run:abc")
    assert (found.settings.num_envs, found.settings.time_limit) == (1, 9.0)
    test = SceneGame(found)
    test.place(Placement("goto 1", 0, 20.0, 20.0))
    for _ in range(5):
        test.decide()
    assert test.game.view.seconds_left == pytest.approx(8.5)


def test_a_run_that_shows_no_agent_in_time_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="has no agent yet: it is starting, or in a long update"):
        present_agent(FakeLab(tmp_path), seconds=0.0)
    assert list((tmp_path / "mail").iterdir()) == []  # the request is withdrawn


def test_a_run_is_asked_for_its_present_agent_unless_it_has_just_shown_one(tmp_path: Path) -> None:
    run, channel, asked = FakeLab(tmp_path), ControlChannel(tmp_path), []

    class Alive(FakeLab):
        @property
        def is_free(self) -> bool:  # looked at while the answer is waited for
            for key, document in channel.requests():
                asked.append(document)
                channel.answer(key, answer)
            return False

    answer = {"error": "the disk did not take the agent"}
    with pytest.raises(LabError, match="shows no agent: the disk did not take"):
        present_agent(Alive(tmp_path), seconds=60.0)
    shown = LiveFolder.of(tmp_path).agent
    shown.mkdir(parents=True)
    (shown / "agent.json").write_text("{}")
    assert present_agent(run) == shown
    os.utime(shown / "agent.json", (1.0, 1.0))
    answer = {"step": 7, "lesson": 1}
    assert present_agent(Alive(tmp_path), seconds=60.0) == shown
    assert asked == [{"kind": "show_agent"}] * 2


def test_what_stands_does_not_depend_on_who_acts() -> None:
    first, second = SceneGame(actor("greedy")), SceneGame(actor("random"))
    for test in (first, second):
        test.place(Placement("attack 3", 0, 20.0, 30.0, turns=2))
    assert first.game.view == second.game.view
    np.testing.assert_array_equal(first.game.buffers.observations, second.game.buffers.observations)

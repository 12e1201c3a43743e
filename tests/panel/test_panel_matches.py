"""Matches on the page: a person against a script, replays of matches, and what is refused."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from browser_page import LARGE, SMALL, Browser, needs_chromium, wait_for_text
from page_audit import AUDIT, AXE, axe_script
from panel_server import PanelUnderTest, running_panel

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.panel.server.actors import (
    PERSON,
    GameActor,
    match_target,
    resting_of,
    rival_lines,
    set_up,
)
from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame, Keys
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.panel.server.replays import PlayedReplay
from aimbot_lab.panel.server.run_list import RunLine
from aimbot_lab.replay.episode import load_replay


class Lab:
    loader = Loader()


def lost_match(away: str = "aimbot", seed: int = 3) -> EpisodeGame:
    """A match in the open hall in which the person stands where it began."""
    match = set_up(Lab(), f"script:{away}")
    game = EpisodeGame(match.person, ChosenEpisode(match_target()[0], 1, seed), match.rival)
    while game.decide() is None:
        pass
    return game


@pytest.fixture(scope="module")
def lost() -> EpisodeGame:
    return lost_match()


def test_a_person_who_stands_is_shot_down_and_keeps_a_replay_of_both(
    lost: EpisodeGame, tmp_path: Path
) -> None:
    view = lost.game.view
    assert [fighter.health for fighter in view.fighters] == [0, 3]
    assert view.fighters[1].hit
    path = tmp_path / "match.json"
    path.write_text(lost.replay())
    replay = load_replay(path)
    assert (replay.about["home"], replay.about["away"]) == ("a person", "aimbot")
    assert replay.episode.actions.shape == (len(replay.episode.actions), 8)
    assert not replay.episode.actions[:, :4].any()
    played = PlayedReplay(path)
    assert played.about()["names"] == ["a person", "aimbot"]
    moments = [moment for k in range(10) for moment in played.portion(50 * k)]
    assert [one["health"] for one in moments[0]["scene"]["fighters"]] == [3, 3]
    assert [one["health"] for one in moments[-1]["scene"]["fighters"]] == [0, 3]
    assert any(moment["scene"]["fighters"][1]["hit"] for moment in moments[:-1])


def test_the_persons_keys_and_mouse_move_home_alone() -> None:
    match = set_up(Lab(), "script:still")
    game = EpisodeGame(match.person, ChosenEpisode(match_target()[0], 1, 3), match.rival)
    before = game.game.view.fighters
    game.game.keys = Keys(ahead=1, right=0, attack=False, mouse=2.0)
    game.decide()
    home, away = game.game.view.fighters
    assert home.yaw == pytest.approx(before[0].yaw + 2.0 * 0.08, abs=1e-4)
    assert (home.x, home.z) != (before[0].x, before[0].z)
    assert (away.x, away.z, away.yaw) == (before[1].x, before[1].z, before[1].yaw)


def test_rivals_are_scripts_and_the_runs_of_that_world() -> None:
    runs = [
        RunLine("abc", "one", "FINISHED", 1, world=match_target()[0]),
        RunLine("def", "two", "trains", 2),  # whose world is not known yet
        RunLine("ghi", "three", "FINISHED", 3, world="another"),
    ]
    keys = [line.key for line in rival_lines(runs)]
    assert keys[:4] == ["script:aimbot", "script:greedy", "script:random", "script:still"]
    over, trains = ("last", "best", "first"), ("last", "first")
    named = [("abc", which) for which in over] + [("def", which) for which in trains]
    assert keys[4:] == [f"run:{run}:{which}" for run, which in named]
    with pytest.raises(ConfigurationError, match="this world has no such script"):
        set_up(Lab(), "script:nobody")


def test_the_test_mode_is_for_worlds_whose_floor_is_edited() -> None:
    match = set_up(Lab(), "script:still")
    with pytest.raises(ConfigurationError, match="this is for the arena: see it at Watch"):
        resting_of(match.person.settings)
    assert match.person == GameActor(PERSON, match.person.settings, None)


@needs_chromium
def test_a_match_is_played_on_the_page_and_its_replay_is_scrubbed(
    browser: Browser, tmp_path: Path, lost: EpisodeGame
) -> None:
    (tmp_path / "match.json").write_text(lost.replay())
    script = axe_script()
    with (
        running_panel(tmp_path / "data", here=tmp_path) as panel,
        browser.page(panel, "play", size=LARGE, bypass_csp=True) as page,
    ):
        page.evaluate(script)
        page.locator("#target option", has_text="duel").wait_for(state="attached")
        page.locator("#target").select_option("duel")
        page.locator("#level option").nth(5).wait_for(state="attached")
        wait_for_text(page, ".fighter.away strong", "^greedy$")
        page.locator("#level").select_option("1")
        page.locator("#seed").fill("13")
        page.locator("#seed").press("Enter")
        page.locator("#beside").select_option("script:aimbot")
        wait_for_text(page, ".fighter.away strong", "^aimbot$")
        assert page.locator(".fighter.home strong").text_content() == "you"
        page.get_by_role("button", name="Start").click()
        wait_for_text(page, ".banner.lost", r"^Away \(aimbot\) wins: you were shot down")
        wait_for_text(page, ".scores tbody th", "^you against aimbot$")
        assert page.evaluate(AXE) == page.evaluate(AUDIT) == []
        scrub_a_match(page)


def scrub_a_match(page) -> None:
    page.locator("#tab-replays").click()
    page.locator("aside button", has_text="match.json").click()
    wait_for_text(page, ".player output", r"^0 of \d+$")
    assert page.locator(".fighter .points").all_text_contents() == ["3 of 3", "3 of 3"]
    assert page.locator("canvas.eyes:visible").count() == 2
    page.locator(".scrub").focus()
    page.keyboard.press("End")
    wait_for_text(page, ".verdict", r"^Away \(aimbot\) wins: home \(a person\) was shot down")
    assert page.locator(".fighter.home .points").text_content() == "0 of 3"
    page.keyboard.press("Home")
    assert page.locator(".verdict").text_content() == ""
    page.set_viewport_size({"width": SMALL[0], "height": SMALL[1]})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate(AXE) == page.evaluate(AUDIT) == []


def test_the_part_play_begins_a_match_and_refuses_who_is_not_there(panel: PanelUnderTest) -> None:
    with panel.page() as page:
        wanted = {"target": "duel", "difficulty": 2, "seed": 3, "beside": ""}
        begun = page.ask("play", "begin", **wanted)
        assert (begun["match"], begun["names"]) == ("duel", ["you", "greedy"])
        assert begun["targets"]["duel"] == 5
        assert [one["health"] for one in begun["frame"]["view"]["fighters"]] == [3, 3]
        assert "there is no such" in page.refused(
            "play", "begin", **{**wanted, "beside": "run:77:first"}
        )
        again = page.ask("play", "begin", **{**wanted, "target": ""})
        assert again["names"] == []


def test_moments_that_are_asked_for_at_once_are_those_that_were_asked_for(
    tmp_path: Path, lost: EpisodeGame
) -> None:
    path = tmp_path / "match.json"
    path.write_text(lost.replay())
    one, first = PlayedReplay(path), [0, 50, 0, 50, 0]
    with ThreadPoolExecutor(len(first)) as threads:
        found = list(threads.map(one.portion, first))
    assert found == [PlayedReplay(path).portion(number) for number in first]

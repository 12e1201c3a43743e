"""The page in a browser where nothing trains: replays, texts of others, a panel that is gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from browser_page import MS, Browser, needs_chromium, wait_for_text
from panel_server import PanelUnderTest, running_panel

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.replay.episode import RowRecorder, as_replay
from aimbot_lab.replay.files import replay_text
from aimbot_lab.worlds.registry import make_world, settings_with, type_of

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


class Stage(NamedTuple):
    browser: Browser
    panel: PanelUnderTest
    here: Path


def recorded() -> str:
    """A replay of a scripted episode, whose lesson has a name that would be a script."""
    settings = settings_with(num_envs=1, time_limit=3.0)
    world = make_world(settings)
    target = type_of(settings).default_target()
    world.set_scenario(Scenario({target: 1.0}))
    buffers = step_buffers(world)
    world.reset(7, buffers.observations)
    play = type_of(settings).baselines(settings)["random"](world, 7)
    recorder = RowRecorder(world, 0)
    while True:
        actions = play(buffers.observations, buffers.finished)
        episode = recorder.add(actions, world.step(actions, buffers))
        if episode is not None:
            about = {"lesson": 1, "lesson_name": HOSTILE, "player": "random"}
            return replay_text(as_replay(episode, about))


@pytest.fixture(scope="module")
def stage(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    here = tmp_path_factory.mktemp("here")
    (here / "broken.yaml").write_text(f"name: {HOSTILE!r}\nlessons: 7\n{HOSTILE!r}: 1\n")
    (here / "episode.json").write_text(recorded())
    with running_panel(here / "data", here=here) as panel:
        yield Stage(browser, panel, here)


def test_a_replay_is_scrubbed_stepped_and_played(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "replays") as page:
        page.locator("aside button", has_text="episode.json").click()
        at, scrub = page.locator(".player output"), page.locator(".scrub")
        wait_for_text(page, ".player output", "^0 of 30$")
        assert HOSTILE in str(page.locator("p.lead").text_content())
        page.get_by_label("One decision ahead").click()
        assert at.text_content() == "1 of 30"
        assert "reward" in str(page.locator("figcaption").text_content())
        scrub.focus()
        page.keyboard.press("End")
        assert at.text_content() == "30 of 30"
        wait_for_text(page, "figcaption", r"Warning\|Result\|")
        page.keyboard.press("Home")
        page.get_by_label("Speed").select_option("8")
        page.get_by_role("button", name="Play").click()
        wait_for_text(page, ".player output", "^30 of 30$")
        wait_for_text(page, "button.play", "^Play$")


def test_a_file_that_is_no_replay_is_refused_in_a_line_and_the_page_goes_on(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "replays") as page:
        page.locator("aside button", has_text="episode.json").wait_for()
        name = "bad.json"
        page.locator("#replay-file").set_input_files(
            {"name": name, "mimeType": "application/json", "buffer": HOSTILE.encode()}
        )
        wait_for_text(page, ".notice", "this is not a replay")
        good = stage.here / "episode.json"
        page.locator("#replay-file").set_input_files(good)
        wait_for_text(page, ".player output", "^0 of 30$")


def test_nothing_of_others_becomes_more_than_text(stage: Stage) -> None:
    with stage.browser.page(stage.panel) as page:
        page.locator(".card.faulty").first.wait_for()
        assert HOSTILE in " ".join(page.locator(".card.faulty").all_text_contents())
        assert page.locator("main img, main script").count() == 0


def test_a_page_waits_for_a_panel_that_is_started_again(stage: Stage, tmp_path: Path) -> None:
    with running_panel(tmp_path / "data", here=tmp_path) as first:
        port = first.door.port
        context = stage.browser.page(first)
        page = context.__enter__()
        page.locator(".card").first.wait_for()
    try:
        wait_for_text(page, "#connection", "offline")
        with running_panel(tmp_path / "data", here=tmp_path, port=port):
            page.locator("#connection").wait_for(state="hidden", timeout=MS)
            page.locator(".card").first.wait_for()
            page.locator("#tab-training").click()
            wait_for_text(page, ".lead", "Nothing trains here yet")
    finally:
        context.__exit__(None, None, None)

"""The page in a browser: started, steered, watched, killed, and offline.

One panel, one training and one browser serve all tests, which go on where those before ended.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from browser_page import LARGE, MS, SMALL, Browser, chromium, needs_chromium
from panel_server import PanelUnderTest, running_panel

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.panel.server.parts.table import PARTS
from aimbot_lab.panel.server.trainings import Started
from aimbot_lab.replay.files import replay_text
from aimbot_lab.replay.playback import as_replay
from aimbot_lab.replay.recorder import recorders
from aimbot_lab.worlds.registry import make_world, settings_with, type_of

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
CURRICULUM = """
# A training without an end.
name: endless
env: {num_envs: 32, time_limit: 5.0}
lessons:
  - name: "<b>first</b>"
    targets: {goto: 3, attack: 1}
    difficulty: {goto: [1, 0, 0, 0, 0], attack: [1, 1, 0, 0, 0]}
    completion_criteria: {threshold: 0.999, min_lesson_length: 1000000}
train:
  total_steps: 1_000_000_000
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {layers: [8]}
"""
AUDIT = """() => {
  const seen = [...document.querySelectorAll("*")].filter((one) => one.checkVisibility());
  const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() ||
    one.labels?.length || one.getAttribute("aria-labelledby");
  const ids = seen.map((one) => one.id).filter(Boolean);
  const used = "button, a[href], input, select, [role=tab], [role=img]";
  return [
    ...seen.filter((one) => one.matches(used) && !named(one))
      .map((one) => "no name: " + one.outerHTML.slice(0, 80)),
    ...seen.filter((one) => one.matches("[tabindex]") && one.tabIndex > 0).map(() => "tabindex"),
    ...seen.filter((one) => one.matches("img:not([alt])")).map(() => "a picture without alt"),
    ...ids.filter((id, k) => ids.indexOf(id) !== k).map((id) => "twice: #" + id),
    ...(document.querySelectorAll("h1").length === 1 ? [] : ["not one h1"]),
  ];
}"""
SHOWN = "els => els.map(one => one.value)"


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
    (recorder,) = recorders(world)
    while True:
        actions = play(buffers.observations, buffers.finished)
        episode = recorder.add(actions, world.step(actions, buffers))
        if episode is not None:
            about = {"lesson": 1, "lesson_name": HOSTILE, "player": "random"}
            return replay_text(as_replay(episode, about))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    from playwright.sync_api import sync_playwright

    here = tmp_path_factory.mktemp("here")
    (here / "endless.yaml").write_text(CURRICULUM)
    (here / "broken.yaml").write_text(f"name: {HOSTILE!r}\nlessons: 7\n{HOSTILE!r}: 1\n")
    (here / "episode.json").write_text(recorded())
    with running_panel(here / "data", here=here) as panel, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield Stage(Browser(browser), panel, here)
        browser.close()
        started = panel.lab.trainings.look()
        if started is not None and started.alive:
            os.kill(started.pid, signal.SIGKILL)
            with suppress(psutil.NoSuchProcess):
                psutil.Process(started.pid).wait()


def saying(text: str) -> re.Pattern[str]:
    return re.compile(text)


def wait_for_text(page: Any, selector: str, text: str) -> None:
    page.locator(selector).filter(has_text=saying(text)).first.wait_for(timeout=MS)


def test_a_choice_starts_a_training_holds_and_shows_it_live(stage: Stage) -> None:
    with stage.browser.page(stage.panel) as page:
        page.locator(".main-cards .card").first.wait_for()
        titles = page.locator(".main-cards strong").all_text_contents()
        assert titles[:4] == ["Train-Free", "Train-Goto", "Train-Attack", "Train-Mix"]
        faults = page.locator(".card.faulty .faults li").all_text_contents()
        assert any(line.startswith(f"{stage.here}/broken.yaml:2:10: lessons: ") for line in faults)
        page.locator(".card", has_text="endless.yaml").click()
        wait_for_text(page, ".held", "since .* A choice holds until the run ends")
        assert page.locator("button.card:not([disabled])").count() == 0
        page.wait_for_url("**/#training/*")
        wait_for_text(page, "h1", "^endless$")
        wait_for_text(page, ".tile", r"^steps[\d,]+of 1\.00 G")
        assert page.locator(".lessons .now strong").text_content() == "<b>first</b>"
        assert page.locator(".cells tbody tr").count() == 2


def test_a_second_choice_is_refused_while_the_training_holds(stage: Stage) -> None:
    with stage.panel.page() as page:
        page.ask("start", "offer")
        told = page.refused("start", "begin", key="shipped:goto")
        assert told == "endless.yaml still trains; stop it first"
        assert "not offered" in page.refused("start", "begin", key="../../etc/passwd")


def training_of(stage: Stage) -> Started:
    """The training that the page began."""
    started = stage.panel.lab.trainings.look()
    assert started is not None
    return started


def weights_of(page: Any, group: str) -> list[float]:
    fieldset = page.locator("fieldset", has=page.locator("legend", has_text=group))
    return [float(text) for text in fieldset.locator("output").all_text_contents()]


def test_sliders_keep_the_sum_with_locks_and_reach_the_run(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "training") as page:
        group = page.locator("fieldset", has=page.locator("legend", has_text="of goto"))
        sliders, locks = group.locator("input"), group.locator(".lock")
        sliders.nth(2).scroll_into_view_if_needed()
        box = sliders.nth(2).bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 8, middle)
        page.mouse.down()
        for part in (0.2, 0.35, 0.5):
            page.mouse.move(box["x"] + part * box["width"], middle)
            assert sum(weights_of(page, "of goto")) == pytest.approx(1.0, abs=1e-9)
        page.mouse.up()
        moved = weights_of(page, "of goto")
        assert 0.4 < moved[2] < 0.6
        assert moved[0] == pytest.approx(1 - moved[2], abs=1e-9)
        wait_for_text(page, "fieldset .note", r"holds from step [\d,]+ on")
        locks.nth(2).click()
        wait_for_text(page, "fieldset .note", r"holds from step [\d,]+ on")
        sliders.nth(4).focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        again = weights_of(page, "of goto")
        assert again[2] == moved[2]
        assert again[4] == pytest.approx(0.03)
        assert sum(again) == pytest.approx(1.0, abs=1e-9)
        page.keyboard.press("End")  # no more than the lock leaves
        assert weights_of(page, "of goto")[4] == pytest.approx(1 - moved[2], abs=1e-9)
        page.wait_for_function("() => !document.querySelector('.waiting')")
    run = str(training_of(stage).run_id)
    with stage.panel.page() as page:
        told = page.ask("training", "weights", run=run, target="goto", moves=[], lock=[], unlock=[])
        assert told["weights"][4] == pytest.approx(1 - moved[2], abs=1e-3)
        assert told["locked"] == [False, False, True, False, False]
        refused = page.refused(
            "training", "weights", run=run, target="goto", moves=[[3, 0.1]], lock=[], unlock=[]
        )
        assert refused == "difficulty 3: its weight is locked"


def test_two_open_pages_agree_on_the_weights_of_targets(stage: Stage) -> None:
    with (
        stage.browser.page(stage.panel, "training") as one,
        stage.browser.page(stage.panel, "training") as other,
    ):
        for page in (one, other):
            page.locator("fieldset input").first.wait_for()
        assert weights_of(other, "Targets") == [0.75, 0.25]
        slider = one.locator("fieldset", has_text="Targets").locator("input").nth(1)
        slider.focus()
        one.keyboard.press("End")
        wait_for_text(other, "fieldset output", r"^1\.000$")
        other.wait_for_function(
            f"() => document.querySelector('fieldset').dataset.sum === '1.000' && "
            f"({SHOWN})([...document.querySelectorAll('fieldset:first-of-type output')])[1]"
            " === '1.000'"
        )
        wait_for_text(other, "fieldset .note", r"holds from step [\d,]+ on")
        assert weights_of(one, "Targets") == weights_of(other, "Targets") == [0.0, 1.0]


def test_the_newest_agent_is_watched_at_play(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "watch") as page:
        wait_for_text(page, ".state", r"^weights of step [\d,]+$")
        page.locator(".term").first.wait_for()
        assert "target hit" in page.locator(".term").all_text_contents()[1]
        wait_for_text(page, ".results li", r"^Warning\|Result\|")
        painted = page.evaluate(
            "() => { const c = document.querySelector('canvas');"
            " return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size }"
        )
        assert painted > 20


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


def test_keys_reach_every_tab_all_is_named_and_no_part_is_too_wide(
    stage: Stage,
) -> None:
    for size in (LARGE, SMALL):
        with stage.browser.page(stage.panel, size=size) as page:
            page.locator("#tab-start").focus()
            for name in [*PARTS][1:]:
                page.keyboard.press("ArrowRight")
                page.wait_for_url(f"**/#{name}")
                assert page.evaluate("document.activeElement.id") == f"tab-{name}"
                page.locator(f"main.part-{name} h1").first.wait_for()
                wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert wider <= 0, (name, size)
                assert page.evaluate(AUDIT) == [], name


def test_nothing_of_others_becomes_more_than_text(stage: Stage) -> None:
    with stage.browser.page(stage.panel) as page:
        page.locator(".card.faulty").first.wait_for()
        assert HOSTILE in " ".join(page.locator(".card.faulty").all_text_contents())
        assert page.locator("main img, main script").count() == 0


def test_a_killed_run_keeps_its_last_state_and_can_be_resumed(stage: Stage) -> None:
    with stage.browser.page(stage.panel, "training") as page:
        wait_for_text(page, ".run-head .state", "^trains$")
        page.locator(".tiles").wait_for()
        os.kill(training_of(stage).pid, signal.SIGKILL)
        wait_for_text(page, ".run-head .state", "^its process died$")
        wait_for_text(page, ".progress .lead", "last state it showed; Resume continues")
        assert page.locator(".tiles").is_visible()
        page.get_by_role("button", name="Resume").click()
        wait_for_text(page, ".run-head .state", "^trains$")
        page.get_by_role("button", name="Stop").click()
        wait_for_text(page, ".run-head .state", "^stopped$")


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


def test_no_page_had_an_error_or_asked_for_anything_elsewhere(stage: Stage) -> None:
    assert stage.browser.faults == []

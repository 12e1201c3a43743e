"""The page in a browser where nothing trains: ways in, replays, unseen runs, a panel gone."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from browser_page import MS, Browser, Stage, needs_chromium, wait_for_text
from click.testing import CliRunner
from panel_server import TOKEN, Page, PanelUnderTest, running_panel

from aimbot_lab.cli.commands import pages
from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.display import Mind
from aimbot_lab.foundation.world import BoolArray, Observations, Scenario, step_buffers
from aimbot_lab.replay.episode import RowRecorder, as_replay, replay_text
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.worlds.registry import make_world, settings_with, type_of

pytestmark = needs_chromium
FILLED = ".main-cards .card"  # once the panel has answered


@contextmanager
def another_server() -> Iterator[tuple[str, list[str]]]:
    """Another port of this machine: its address, and all that a browser sends there."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(f"{self.requestline}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>another</title>")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", sent
        finally:
            server.shutdown()
            thread.join()


def test_a_page_stays_in_and_what_another_port_is_sent_lets_nobody_in(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel, fresh=True) as page, another_server() as (address, sent):
        page.locator(FILLED).first.wait_for()
        assert page.url == f"{panel.origin}/#start"
        page.reload()
        page.locator(FILLED).first.wait_for()
        second = page.context.new_page()
        second.goto(f"{panel.origin}/")
        second.locator(FILLED).first.wait_for()
        second.evaluate("address => { location.href = address; }", address)
        second.wait_for_url(address)
        assert sent
        assert page.context.cookies() == []
        assert all(TOKEN not in one and "cookie:" not in one.lower() for one in sent)


def test_a_page_without_the_token_says_so_and_comes_in_once_another_tab_does(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel, fresh=True) as page:
        page.locator(FILLED).first.wait_for()
        page.evaluate("localStorage.token = 'that of a panel before'")
        page.reload()
        wait_for_text(page, "#connection", "open the address that it printed")
        second = page.context.new_page()
        second.goto(panel.entrance)
        page.locator(FILLED).first.wait_for()
        page.locator("#connection").wait_for(state="hidden")
    expected = [one for one in browser.faults if "403" in one]
    assert browser.faults == expected != []
    browser.faults.clear()


def test_the_private_file_leads_to_the_page_and_its_part(
    tmp_path: Path, browser: Browser, panel: PanelUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()
    monkeypatch.setattr(pages.webbrowser, "open", lambda _: opened.set())
    entrance = pages.open_privately(f"{panel.entrance}#training/a&b", tmp_path)
    assert opened.wait(300)
    with browser.page(panel) as page:
        page.goto(entrance.as_uri())
        page.wait_for_url(f"{panel.origin}/#training/a&b")
        wait_for_text(page, ".notice", "^no such request: run: ")
    browser.faults.remove(f"request: {entrance.as_uri()}")


def test_an_address_that_is_not_encoded_is_taken_as_it_stands(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel, "%") as page:
        page.locator(FILLED).first.wait_for()
        for part in ("training", "watch", "replays", "sweep"):  # which look at what follows
            for odd in (f"{part}/%", f"{part}/%E0%A4%A"):
                page.evaluate("odd => { location.hash = odd; }", odd)
                page.locator(f"main.part-{part} h1").wait_for()
        for odd in ("sweep/" + "x" * 100_000, "__proto__/%"):
            page.evaluate("odd => { location.hash = odd; }", odd)
        page.locator(FILLED).first.wait_for()
        assert page.locator("#connection").is_hidden()


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def judged(observations: Observations, masks: BoolArray) -> Mind:
    """A mind that is half sure of its first branch, and expects ever more."""
    shares = np.tile([0.5, 0.25, 0.25], (len(masks), 1))
    return Mind(np.arange(len(observations), dtype=np.float64), (shares, shares, shares[:, 1:] * 2))


def recorded() -> str:
    """A replay of a scripted episode, whose lesson has a name that would be a script."""
    settings = settings_with(num_envs=1, time_limit=3.0)
    world = make_world(settings)
    target = type_of(settings).default_target()
    world.set_scenario(Scenario({target: 1.0}))
    buffers = step_buffers(world)
    world.reset(7, buffers.observations)
    play = type_of(settings).baselines(settings)["random"](world, 7)
    recorder = RowRecorder(world, 0, lambda: buffers.observations)
    while True:
        actions = play(buffers.observations, buffers.finished)
        episode = recorder.add(actions, world.step(actions, buffers))
        if episode is not None:
            about = {"lesson": 1, "lesson_name": HOSTILE, "player": "random"}
            return replay_text(as_replay(episode, about, judged))


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
        wait_for_text(
            page,
            ".mind",
            r"Critic's value 0\.00vertical stay 50 %ahead 25 %back 25 %horizontal stay 50 %",
        )
        assert page.locator(".mind .taken").count() == 3
        assert "reward" in str(page.locator("figcaption").text_content())
        scrub.focus()
        page.keyboard.press("End")
        assert at.text_content() == "30 of 30"
        wait_for_text(page, ".mind", r"Critic's value 29\.00")
        wait_for_text(page, "figcaption", "(Won|Lost) after")
        page.keyboard.press("Home")
        page.get_by_label("Speed").select_option("8")
        page.get_by_role("button", name="Play").click()
        wait_for_text(page, ".player output", "^30 of 30$")
        wait_for_text(page, "button.play", "^Play$")


def test_a_file_that_is_no_replay_is_refused_in_a_line_and_nothing_becomes_more_than_text(
    stage: Stage,
) -> None:
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
        page.locator("#tab-start").click()
        page.locator(".card.faulty").first.wait_for()
        assert HOSTILE in " ".join(page.locator(".card.faulty").all_text_contents())
        assert page.locator("main img, main script").count() == 0


def test_a_page_waits_for_a_panel_that_is_started_again(stage: Stage, tmp_path: Path) -> None:
    with running_panel(tmp_path / "data", here=tmp_path) as first:
        port = first.door.port
        context = stage.browser.page(first, fresh=True)
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


SHORT = """
# Passed at once.
name: short
env: {world: gymnasium, id: CartPole-v1, num_envs: 8, win: {return_above: 15}}
lessons: [{name: balance, completion_criteria: {threshold: 0.05, min_lesson_length: 200}}]
train: {total_steps: 20_000, n_steps: 64, batch_size: 128, n_epochs: 1, network: {layers: [8]}}
"""


def command_line(*words: str) -> str:
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def listed_of(page: Page, holds: Any) -> dict[str, Any]:
    """The runs by id, once the page is told of some that `holds`."""
    told = page.wait_for(
        "training", "runs", lambda body: holds([r["run_id"] for r in body["runs"]])
    )
    assert told["complete"], told["fault"]
    return {run["run_id"]: run for run in told["runs"]}


def test_runs_that_nobody_saw_are_listed_as_the_store_has_them_and_deleted_ones_go(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "short.yaml").write_text(SHORT)
    place = "--data-dir", str(tmp_path / "data")
    with running_panel(tmp_path / "data", here=tmp_path) as panel:
        with browser.page(panel) as page:
            page.locator(".card", has_text="short.yaml").click()
            page.get_by_role("button", name="Start").click()
            wait_for_text(page, ".held", "is starting")
        begun = json.loads((tmp_path / "data" / "panel" / "started.json").read_text())
        psutil.Process(begun["pid"]).wait()  # no page is open
        (stored,) = json.loads(command_line("runs", "--json", *place))
        run = stored["run_id"]
        with browser.page(panel) as page:
            wait_for_text(page, ".held", "^short.yaml has ended")
            page.locator(".held a").click()
            page.wait_for_url(f"**/#training/{run}")
            wait_for_text(page, ".run-link.FINISHED", f"^{stored['name']}all lessons passed")
            wait_for_text(page, ".run-head .state", "^all lessons passed$")
            wait_for_text(page, ".outcome", f"^{stored['tags']['lab.outcome']}$")
        with panel.page() as page:
            page.ask("training", "list")
            line = listed_of(page, lambda ids: ids == [run])[run]
            assert (line["name"], line["state"]) == (stored["name"], stored["status"])
            assert line["win_rate"] == stored["win_rate"]["value"]
            description = RunDescription("of a terminal")
            other = open_run(DataFolder(tmp_path / "data"), TrackingSettings(), description)
            other.finish("KILLED")
            page.wait_for(  # it may be seen as it begins, too
                "training",
                "runs",
                lambda body: (
                    (other.run_id, "KILLED")
                    in [(one["run_id"], one["state"]) for one in body["runs"]]
                ),
            )
            command_line("delete", run, "--yes", *place)
            assert listed_of(page, lambda ids: len(ids) == 1).keys() == {other.run_id}


def test_replays_begin_with_the_newest_run_that_has_any(browser: Browser, tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    for name, texts in (("older", [recorded()]), ("newer", [])):
        tracker = open_run(data, TrackingSettings(), RunDescription(name))
        newest = tracker.run_id
        for text in texts:
            tracker.log_text(text, "replays/lesson-01-first.json")
        tracker.finish("FINISHED")
    with running_panel(data.root, here=tmp_path) as panel:
        with browser.page(panel, "replays") as page:
            wait_for_text(page, "aside ul", "^Lesson 1, its first episode$")
            assert page.locator("#replay-run option:checked").text_content() == "older"
        with browser.page(panel, f"replays/{newest}") as page:  # a link to a run shows that one
            wait_for_text(page, "aside ul", "^There is no replay here yet")
            assert page.locator("#replay-run option:checked").text_content() == "newer"

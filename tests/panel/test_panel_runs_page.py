"""Runs and sweeps in a browser: found, compared, edited, watched, begun, stopped and proved."""

import math
from pathlib import Path

import gymnasium
import numpy as np
from browser_page import SMALL, Browser, needs_chromium, wait_for_text
from panel_server import PanelUnderTest, running_panel

from aimbot_lab.api import train
from aimbot_lab.panel.server.messages import plain
from aimbot_lab.panel.server.run_list import ShownLesson
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings

pytestmark = needs_chromium


def kept(data: DataFolder, name: str, rate: float, *, points: int = 10, **tags: str) -> str:
    """A run that is over, with a win rate that rises to `rate`."""
    tags = {"lab.lesson": "narrow ways", "lab.lessons_passed": "1 of 2", **tags}
    tracker = open_run(data, TrackingSettings(), RunDescription(name, tags=tags))
    for step in range(1, points + 1):
        value = rate * step / 10
        ends = {"lower": value - 0.05, "upper": value + 0.05}
        ends = {f"learning/win_rate_{key}": end for key, end in ends.items()}
        tracker.log_metrics(1000 * step, {"learning/win_rate": value, **ends})
    tracker.finish("FINISHED")
    return tracker.run_id


NO_STORAGE = "Object.defineProperty(self, 'sessionStorage', { get() { throw new Error('none'); } })"


def test_runs_are_found_compared_renamed_tagged_and_deleted(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    first = kept(data, "walker", 0.6, kind="slow")
    second = kept(data, "runner", 0.9)
    with (
        running_panel(data.root, here=tmp_path) as panel,
        browser.page(panel, "runs", fresh=True) as page,
    ):
        wait_for_text(page, ".run-head [role=status]", "^2 runs$")
        row = page.locator(f"tr[data-run='{second}']")
        assert row.locator("td").nth(3).text_content() == "90.0 % [85.0, 95.0]"
        assert row.locator("td").nth(4).text_content() == "narrow ways, 1 of 2 passed"
        page.get_by_label("Filter").fill("kind=slow passed")
        wait_for_text(page, ".run-head [role=status]", "^1 of 2 runs$")
        page.reload()  # which keeps what is looked for
        wait_for_text(page, ".run-head [role=status]", "^1 of 2 runs$")
        assert page.locator(".all-runs tbody tr").get_attribute("data-run") == first
        page.add_init_script(NO_STORAGE)
        page.reload()
        wait_for_text(page, ".run-head [role=status]", "^2 runs$")
        page.get_by_label("Order").select_option("best")
        assert page.locator(".all-runs tbody tr").first.get_attribute("data-run") == second

        page.get_by_label("Compare walker").check()
        page.get_by_label("Compare runner").check()
        said = "Win rate, training episodes: .*6.0 % at step 1 k, 60.0 % at step 10 k; .*90.0 % at"
        page.locator(".curve canvas").wait_for()
        page.wait_for_function(
            "pattern => new RegExp(pattern).test("
            "document.querySelector('.curve canvas').getAttribute('aria-label'))",
            arg=said,
        )
        over = page.locator(".curve .u-over")
        box = over.bounding_box()
        over.hover(position={"x": box["width"] / 2, "y": 50})
        wait_for_text(page, ".u-legend", r"walker.*% \[.*, .*\].*runner.*% \[.*, .*\]")
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 60, steps=4)
        page.mouse.up()
        page.get_by_role("button", name="Show all steps").click()
        page.get_by_role("button", name="Show all steps").wait_for(state="hidden")

        row.get_by_role("button", name="Edit").click()
        page.get_by_label("Name").fill("the <b>best</b>")
        page.get_by_label("Note").fill("Kept for the talk.")
        page.get_by_label("Tags").fill("kind=fast\ntalk=yes")
        page.get_by_role("button", name="Save").click()
        wait_for_text(
            page, f"tr[data-run='{second}']", "the <b>best</b>.*Kept for the talk.*talk=yes"
        )
        (stored,) = [run for run in list_runs(data) if run.run_id == second]
        assert stored.name == "the <b>best</b>"
        own = {key: stored.tags[key] for key in ("note", "kind", "talk")}
        assert own == {"note": "Kept for the talk.", "kind": "fast", "talk": "yes"}

        page.locator(f"tr[data-run='{first}']").get_by_role("button", name="Edit").click()
        page.get_by_label("Tags").fill("lab.seed=7")
        page.get_by_role("button", name="Save").click()
        wait_for_text(page, "dialog .notice", "tag: lab. and mlflow. are reserved")
        page.locator("dialog").get_by_role("button", name="Delete …").click()
        wait_for_text(page, "dialog", "Delete walker\\?.*can't be undone")
        page.get_by_role("button", name="Delete for good").click()
        wait_for_text(page, ".run-head [role=status]", "^1 run$")
        assert [run.run_id for run in list_runs(data)] == [second]


def test_all_runs_that_are_found_are_compared_by_one_click_up_to_their_own_ends(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    kept(data, "walker", 0.6, points=5, kind="slow")
    kept(data, "a very long name " * 14, 0.8, kind="slow")
    kept(data, "runner", 0.9)
    with (
        running_panel(data.root, here=tmp_path) as panel,
        browser.page(panel, "runs", size=SMALL) as page,
    ):
        page.get_by_label("Filter").fill("kind=slow")
        wait_for_text(page, ".run-head [role=status]", "^2 of 3 runs$")
        everything = page.get_by_label("Compare all listed runs")
        everything.check()
        wait_for_text(page, ".u-legend", r"long name.*80.0 % \[75.0, 85.0\]")
        wait_for_text(page, ".u-legend", r"walker.*30.0 % \[25.0, 35.0\]")
        assert page.locator(".u-legend tr", has_text="long").bounding_box()["height"] < 60
        page.locator("#tab-training").click()
        page.locator("#tab-runs").click()  # where all is as it was left
        wait_for_text(page, ".u-legend", r"long name.*walker")
        assert page.get_by_label("Filter").input_value() == "kind=slow"
        everything.uncheck()
        page.locator(".compare").wait_for(state="hidden")
        for part in ("replays", "training", "watch"):
            page.locator(f"#tab-{part}").click()
            page.locator(f".part-{part}", has_text="a very long name").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            page.set_viewport_size({"width": 1400, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_run_that_a_person_looks_at_stays_when_another_begins(
    browser: Browser, tmp_path: Path
) -> None:
    data = DataFolder(tmp_path / "data")
    kept(data, "first", 0.6)
    with running_panel(data.root, here=tmp_path) as panel, browser.page(panel, "training") as page:
        wait_for_text(page, "h1", "^first$")
        kept(data, "second", 0.7)
        wait_for_text(page, "h1", "^second$")  # the newest, as long as the page was left alone
        page.locator("h1").click()
        kept(data, "third", 0.8)
        page.locator(".run-link", has_text="third").wait_for()
        assert page.locator("h1").text_content() == "second"


def test_a_sweep_is_stopped_resumed_and_headed_by_what_fresh_seeds_confirmed(
    browser: Browser, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with running_panel(data, here=tmp_path) as panel, browser.page(panel, "sweep") as page:
        page.get_by_role("button", name="Start a sweep").click()
        page.get_by_label("File").select_option("shipped:planted")
        page.get_by_label("Name").fill("mine")
        page.get_by_role("spinbutton", name="Trials").fill("2000")
        page.get_by_label("Processes").fill("1")
        page.get_by_role("button", name="Start", exact=True).click()
        wait_for_text(page, "h1", "^mine$")
        wait_for_text(page, ".outcome", "^Best of the search so far, not confirmed: trial ")
        page.get_by_role("button", name="Stop").click()
        wait_for_text(page, ".run-head .state", "^stopped$")
        page.locator(".trials tbody tr").first.wait_for()
        page.get_by_role("button", name="Resume").click()
        assert page.get_by_label("Name").input_value() == "mine"
        page.get_by_role("spinbutton", name="Trials").fill("4")
        page.get_by_label("Processes").fill("1")
        page.get_by_role("button", name="Resume", exact=True).click()
        wait_for_text(page, ".outcome", r"^Confirmed on 2 fresh seeds: trial \d+.*, 0\.\d+ \[")
        wait_for_text(page, ".run-head .state", "^done$")
        wait_for_text(page, ".quiet", f"in MLflow: aimbot-lab ui [0-9a-f]{{12}} --data-dir {data}")


FILE = """
name: watched
env: {world: gymnasium, id: CartPole-v1, num_envs: 2, kwargs: {render_mode: rgb_array}}
train: {algo: ppo, total_steps: 64, n_steps: 32, batch_size: 32, n_epochs: 1}
"""
SHARES = """() => {
  const c = document.querySelector('canvas'), shares = {};
  const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  for (let at = 0; at < data.length; at += 4) {
    const colour = data.slice(at, at + 3).join();
    shares[colour] = (shares[colour] ?? 0) + 4 / data.length;
  }
  return Object.fromEntries(Object.entries(shares).filter(([, share]) => share > 0.001));
}"""
DRAWN = "() => document.querySelector('canvas').toDataURL()"


def common_colours(name: str) -> list[list[int]]:
    """The two colours that an environment draws most."""
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=1)
    drawn = np.asarray(env.render()).reshape(-1, 3)
    env.close()
    colours, counts = np.unique(drawn, axis=0, return_counts=True)
    found: list[list[int]] = colours[np.argsort(counts)[-2:]].tolist()
    return found


def test_the_picture_is_what_an_environment_draws_and_it_moves(
    browser: Browser, tmp_path: Path
) -> None:
    (file := tmp_path / "watched.yaml").write_text(FILE)
    run = train(file, data_dir=tmp_path / "data").run_id
    with (
        running_panel(tmp_path / "data", here=tmp_path) as panel,
        browser.page(panel, f"watch/{run}") as page,
    ):
        wait_for_text(page, ".state", r"^weights of step [\d,]+$")
        for _ in range(2):
            before = page.evaluate(DRAWN)
            page.wait_for_function(f"before => ({DRAWN})() !== before", arg=before)
        shares = page.evaluate(SHARES)
    for colour in common_colours("CartPole-v1"):
        assert ",".join(map(str, colour)) in shares, colour


PASSED = {
    **{"name": "open ground", "ended_at_step": 261_632, "episodes": 2313, "window": 40},
    **{"win_rate": 0.925, "lower": 0.3021, "upper": 1.0, "measure": "win_rate", "threshold": 0.3},
    **{"every_cell": False, "evidence": 22.14, "evidence_needed": 20.0, "value": None},
}
CELLS = {**PASSED, "name": "b", "every_cell": True, "win_rate": 1.0, "lower": 0.99961}
STEPS = {**PASSED, "name": "c", "measure": "progress", "threshold": 0.5, "value": 0.5123}
STEPS |= {"evidence": None, "evidence_needed": None, "lower": 0.8}
BEGUN = {**PASSED, "name": "d", "ended_at_step": None, "episodes": 2, "window": 2, "win_rate": 1.0}
BEGUN |= {"lower": 0.04, "evidence": 1.4}
OLD = {"name": "one", "ended_at_step": 1800, "episodes": 34, "window": 34}
OLD |= {"win_rate": 0.5, "lower": 0.25, "upper": 0.75}
RETURNS = {**BEGUN, "win_rate": None, "mean_return": 3.5, "measure": None, "evidence": None}
LIVE = {
    **{"step": 1, "total_steps": 2, "steps_per_second": None, "lesson": 3, "finished": False},
    **{"episodes": 2, "window": 2, "threshold": 0.3, "min_lesson_length": 100, "measured": None},
    **{"log_evidence": 0.3, "log_bound": math.log(20), "evidence_words": "1.35 of 20", "cells": []},
    "win_rate": {"win_rate": 1, "lower": 0.99961, "upper": 1},
}
NO_WINS = {
    **{**LIVE, "lesson": 0, "threshold": None, "min_lesson_length": 0, "log_evidence": None},
    **{"log_bound": None, "win_rate": {"win_rate": None, "lower": 0, "upper": 1}},
    **{"has_wins": False, "mean_return": 3.5},
}
VIEWS = """async ([lessons, live, ended]) => {
  const [{ progressView }, { reportView }] = await Promise.all(
    [import("/page/run/progress.js"), import("/page/run/report.js")]);
  const [now, end] = [progressView(), reportView(() => {})];
  now.draw({ state: "trains", fault: "", status: { lessons, ...live } });
  const none = { cells: [], regressions: [], has_wins: live.has_wins };
  const result = { seed: 1, steps: 3342336, lessons, ...none };
  end.draw({ outcome: "", fault: "", curves: [], commands: [], result, ...ended }, true);
  const texts = (view, of) => [...view.node.querySelectorAll(of)].map((one) => one.textContent);
  const rows = [...end.node.querySelectorAll("tbody tr")];
  return {
    lessons: texts(now, ".lessons li span"), words: texts(now, ".words"),
    gauges: texts(now, ".gauge:not([hidden])"), tiles: texts(end, ".tile"), heads: texts(end, "th"),
    rows: rows.map((row) => [...row.children].map((one) => one.textContent)),
  };
}"""


def test_live_and_ended_runs_prove_passed_lessons_and_show_returns_where_none_can_be_won(
    panel: PanelUnderTest, browser: Browser
) -> None:
    ended = {"seconds": 160.0, "training_seconds": 114.0, "steps_per_second": 29_317.0}
    old = {"seconds": 160.0, "training_seconds": None, "steps_per_second": 21_000.0}
    drawn = [
        ((PASSED, CELLS, STEPS, BEGUN), LIVE, ended),
        ((PASSED, STEPS, OLD, BEGUN), LIVE, ended),
        ((BEGUN,), LIVE, ended),
        ((OLD,), LIVE, old),
        ((RETURNS,), NO_WINS, ended),
    ]
    with browser.page(panel) as page:
        proved, live, begun, before, returns = (
            page.evaluate(VIEWS, [[plain(ShownLesson(**one)) for one in lessons], *told])
            for lessons, *told in drawn
        )
    assert proved["tiles"][1:4] == [
        "trained for1 min 54 s2 min 40 s from start to end",
        "steps per second29.3 kwhile it trained",
        "win rate, last passed lesson92.5 %c: progress > 0.5",
    ]
    proven = "92.5 % [30.2, 100.0]", "40"
    assert [row[4:] for row in proved["rows"]] == [
        [*proven, "> 30 %", "22.1 of 20"],
        ["100.0 % [99.9, 100.0]", proven[1], "> 30 % (each cell)", "22.1 of 20"],
        ["92.5 % [80.0, 100.0]", proven[1], "progress > 0.5", "0.5123 (no test)"],
        ["100.0 % [4.0, 100.0]", "2", "> 30 %", "1.4 of 20"],
    ]
    assert live["lessons"] == [
        "passed at step 261,632: win rate > 30 %, evidence 22.1 of 20",
        "passed at step 261,632: progress 0.5123 > 0.5",
        "passed at step 1,800",
        "now",
    ]
    assert live["words"] == ["100.0 % [99.9, 100.0], threshold 30 %", "1.35 of 20"]
    assert begun["tiles"][3] == "win rate, last passed lesson–none was passed"
    assert before["tiles"][1:4] == [
        "trained for–2 min 40 s from start to end",
        "steps per second21 kat its last report",
        "win rate, last passed lesson50.0 %one",
    ]
    ((*_, rate, _, asked, found),) = before["rows"]
    assert (rate, asked, found) == ("50.0 % [25.0, 75.0]", "–", "–")
    assert returns["gauges"] == ["Mean return3.5last 2 episodes of the lesson"]
    assert returns["tiles"][3] == "mean return3.5of the last 2 episodes"
    assert "mean return" in returns["heads"]
    assert "win rate (95 %)" not in returns["heads"]

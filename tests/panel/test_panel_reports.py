"""What the panel says of runs that are over, and of results: short, rounded, ready to be copied."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from browser_page import Browser, needs_chromium
from panel_server import PanelUnderTest

from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.messages import plain, written
from aimbot_lab.panel.server.replays import ResultLine, in_one, readable
from aimbot_lab.panel.server.run_list import ShownLesson
from aimbot_lab.panel.server.run_report import command, report_of, result_of, thinned
from aimbot_lab.tracking import history
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import MetricPoint


@pytest.mark.parametrize(
    ("full", "line", "detail", "words"),
    [
        (
            "Warning|Result|Win|target=goto|difficulty=1|seconds=3.25|return=12.3456789012345",
            "Warning|Result|Win",
            "target=goto, difficulty=1, seconds=3.25, return=12.35",
            "Won after 3.2 s",
        ),
        ("Warning|Result|Lose|return=-0.1", "Warning|Result|Lose", "return=-0.1", "Lost"),
        ("Warning|Result|Draw|score=123456.7", "Warning|Result|Draw", "score=123457", "Drawn"),
        ("Warning|Command", "Warning|Command", "", "Warning|Command"),
        ("Warning|Result|Win|who=<b>|x", "Warning|Result|Win", "who=<b>, x", "Won"),
    ],
)
def test_a_result_line_is_told_in_words_and_its_numbers_rounded(
    full: str, line: str, detail: str, words: str
) -> None:
    assert readable(full) == ResultLine(line, detail, words)
    assert in_one(full) == (f"{words} ({detail})" if detail else words)


@pytest.mark.parametrize("count", [0, 1, 240, 241, 2000])
def test_a_curve_keeps_its_area_and_its_end_however_it_is_thinned(count: int) -> None:
    points = [MetricPoint(10 * k, 0, float(k % 7)) for k in range(count)]
    found = thinned(points)
    assert len(found) <= 240
    assert [step for step, _ in found][-1:] == [point.step for point in points][-1:]
    assert count > 240 or found == [(point.step, point.value) for point in points]
    size = -(-count // 240) or 1
    whole = count // size * size
    assert sum(value * size for _, value in found[: whole // size]) == pytest.approx(
        sum(point.value for point in points[:whole])
    )


def test_a_command_names_the_data_folder_where_another_would_be_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "a folder"
    monkeypatch.setenv("AIMBOT_LAB_DATA_DIR", str(odd))
    assert command(Lab(DataFolder(odd), here=tmp_path), "runs") == "aimbot-lab runs"
    monkeypatch.setenv("AIMBOT_LAB_DATA_DIR", str(tmp_path / "other"))
    words = shlex.split(command(Lab(DataFolder(odd), here=tmp_path), "runs"))
    assert words == ["aimbot-lab", "runs", "--data-dir", str(odd)]
    lab = Lab(DataFolder(tmp_path / "other"), here=tmp_path, tracking_uri="http://host:1")
    assert command(lab, "runs") == "aimbot-lab runs --tracking-uri http://host:1"


def test_a_run_that_kept_no_result_is_reported_by_its_curves(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    tracker = open_run(data, TrackingSettings(), RunDescription("old", tags={"lab.outcome": "Ok."}))
    for step in (10, 20):
        tracker.log_metrics(step, {"learning/win_rate": 0.5, "time/steps_per_second": 100.0})
        tracker.log_metrics(step, {"learning/win_rate_lower": 0.25})
    tracker.finish("FINISHED")
    found = report_of(Lab(data, here=tmp_path), tracker.run_id)
    assert (found.outcome, found.result, found.steps_per_second) == ("Ok.", None, 100.0)
    (curve,) = found.curves
    assert (curve.is_rate, curve.steps, curve.values) == (True, [10, 20], [0.5, 0.5])
    assert (curve.lower, curve.upper) == ([0.25, 0.25], [None, None])
    assert [one.line.split()[1] for one in found.commands] == [
        *("evaluate", "record", "explain", "export")
    ]


RESULT = {
    **{"seed": 1, "steps": 2048, "regressions": []},
    "lessons": [
        {
            **{"name": "one", "ended_at_step": 1800, "episodes": 34, "window": 34},
            **{"win_rate": 0.5, "lower": 0.25, "upper": 0.75},
        }
    ],
    "cells": [],
}
DAMAGED = (
    *("", "{", "[]", "null", "7", '"x"', "\xff\x00", "[" * 100_000, json.dumps(RESULT)[:-9]),
    *(json.dumps({**RESULT, key: value}) for key in RESULT for value in (None, "x", {"a": 1})),
    *(json.dumps({**RESULT, key: [value]}) for key in RESULT for value in (None, 7, {"a": 1}, [])),
)


def test_a_damaged_result_of_a_run_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, place = Lab(DataFolder(tmp_path), here=tmp_path), tmp_path / "result.json"
    monkeypatch.setattr(history, "download_artifact", lambda *_, **__: place)
    for text in DAMAGED:
        place.write_text(text, "latin-1")
        found, fault = result_of(lab, "abc")
        assert found is None, text
        assert fault.startswith("result.json is damaged: "), text
        assert "\n" not in fault
    place.write_text(json.dumps(RESULT).replace("0.25", "NaN").replace("0.75", "1e999"))
    found, fault = result_of(lab, "abc")
    assert fault == ""
    lesson = json.loads(written("training", "result", found))["body"]["lessons"][0]
    assert (lesson["lower"], lesson["upper"], lesson["window"]) == (None, None, 34)


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
OLD = {name: RESULT["lessons"][0][name] for name in RESULT["lessons"][0]}


def shown(*lessons: dict[str, Any]) -> list[dict[str, Any]]:
    """`lessons` as the server sends them."""
    return [plain(ShownLesson(**one)) for one in lessons]


DRAW = """async ([lessons, seconds]) => {
  const { reportView } = await import("/page/run/report.js");
  const view = reportView(() => {});
  const result = { seed: 1, steps: 3342336, lessons, cells: [], regressions: [] };
  view.draw({ outcome: "", fault: "", curves: [], commands: [], result, ...seconds }, true);
  const texts = (of) => [...view.node.querySelectorAll(of)].map((one) => one.textContent);
  const rows = [...view.node.querySelectorAll("tbody tr")];
  return [texts(".tile"), rows.map((row) => [...row.children].map((one) => one.textContent))];
}"""


@needs_chromium
def test_the_page_proves_a_passed_lesson_and_heads_with_no_other(
    panel: PanelUnderTest, browser: Browser
) -> None:
    told = {"seconds": 160.0, "training_seconds": 114.0, "steps_per_second": 29_317.0}
    with browser.page(panel) as page:
        tiles, rows = page.evaluate(DRAW, [shown(PASSED, CELLS, STEPS, BEGUN), told])
        assert tiles[1:3] == [
            "trained for1 min 54 s2 min 40 s from start to end",
            "steps per second29.3 kwhile it trained",
        ]
        assert tiles[3] == "win rate, last passed lesson92.5 %c: progress > 0.5"
        proven = "92.5 % [30.2, 100.0]", "40"
        assert [row[4:] for row in rows] == [
            [*proven, "> 30 %", "22.1 of 20"],
            ["100.0 % [99.9, 100.0]", proven[1], "> 30 % (each cell)", "22.1 of 20"],
            ["92.5 % [80.0, 100.0]", proven[1], "progress > 0.5", "0.5123 (no test)"],
            ["100.0 % [4.0, 100.0]", "2", "> 30 %", "1.4 of 20"],
        ]
        tiles, rows = page.evaluate(DRAW, [shown(BEGUN), told])
        assert tiles[3] == "win rate, last passed lesson–none was passed"
        old = {"seconds": 160.0, "training_seconds": None, "steps_per_second": 21_000.0}
        tiles, ((*_, rate, _, asked, found),) = page.evaluate(DRAW, [shown(OLD), old])
        assert tiles[1:3] == [
            "trained for–2 min 40 s from start to end",
            "steps per second21 kat its last report",
        ]
        assert tiles[3] == "win rate, last passed lesson50.0 %one"
        assert (rate, asked, found) == ("50.0 % [25.0, 75.0]", "–", "–")


PROGRESS = """async ([lessons]) => {
  const { progressView } = await import("/page/run/progress.js");
  const view = progressView();
  view.draw({ state: "trains", fault: "", status: {
    step: 1, total_steps: 2, steps_per_second: null, lesson: 3, lessons, finished: false,
    episodes: 2, window: 2, win_rate: { win_rate: 1, lower: 0.99961, upper: 1 }, threshold: 0.3,
    min_lesson_length: 100, log_evidence: 0.3, log_bound: Math.log(20), measured: null, cells: [],
  } });
  const texts = (of) => [...view.node.querySelectorAll(of)].map((one) => one.textContent);
  return [texts(".lessons li span"), texts(".words")];
}"""


@needs_chromium
def test_the_live_page_says_by_what_each_lesson_was_passed(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel) as page:
        lessons, gauges = page.evaluate(PROGRESS, [shown(PASSED, STEPS, OLD, BEGUN)])
    assert lessons == [
        "passed at step 261,632: win rate > 30 %, evidence 22.1 of 20",
        "passed at step 261,632: progress 0.5123 > 0.5",
        "passed at step 1,800",
        "now",
    ]
    assert gauges == ["100.0 % [99.9, 100.0], threshold 30 %", "1.35 of 1/α = 20"]


RETURNS = """async ([lesson]) => {
  const [{ progressView }, { reportView }] = await Promise.all(
    [import("/page/run/progress.js"), import("/page/run/report.js")]);
  const [now, end] = [progressView(), reportView(() => {})];
  now.draw({ state: "trains", fault: "", status: {
    step: 1, total_steps: 2, steps_per_second: null, lesson: 0, lessons: [lesson], finished: false,
    episodes: 2, window: 2, win_rate: { win_rate: null, lower: 0, upper: 1 }, threshold: null,
    min_lesson_length: 0, log_evidence: null, log_bound: null, measured: null, cells: [],
    has_wins: false, mean_return: 3.5,
  } });
  const none = { cells: [], regressions: [], has_wins: false };
  const result = { seed: 1, steps: 2, lessons: [lesson], ...none };
  end.draw({ fault: "", result, outcome: "", curves: [], commands: [], seconds: 1 }, true);
  const texts = (view, of) => [...view.node.querySelectorAll(of)].map((one) => one.textContent);
  return [texts(now, ".gauge:not([hidden])"), texts(end, ".tile")[3], texts(end, "th")];
}"""


@needs_chromium
def test_the_pages_show_mean_returns_where_no_episode_can_be_won(
    panel: PanelUnderTest, browser: Browser
) -> None:
    lesson = {**BEGUN, "win_rate": None, "mean_return": 3.5, "measure": None, "evidence": None}
    with browser.page(panel) as page:
        gauges, tile, heads = page.evaluate(RETURNS, shown(lesson))
    assert gauges == ["Mean return3.5last 2 episodes of the lesson"]
    assert tile == "mean return3.5of the last 2 episodes"
    assert "mean return" in heads
    assert "win rate (95 %)" not in heads


def test_a_run_says_how_long_it_trained_and_how_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, place = DataFolder(tmp_path / "data"), tmp_path / "result.json"
    place.write_text(json.dumps(RESULT))
    monkeypatch.setattr(history, "download_artifact", lambda *_, **__: place)
    tracker = open_run(data, TrackingSettings(), RunDescription("new"))
    tracker.log_metrics(20, {"time/steps_per_second": 100.0})
    tracker.set_tags({"lab.training_seconds": "8.0"})
    tracker.finish("FINISHED")
    found = report_of(Lab(data, here=tmp_path), tracker.run_id)
    assert (found.training_seconds, found.steps_per_second) == (8.0, 256.0)

"""What the panel says of runs that are over, and of results: short, rounded, ready to be copied."""

import json
import shlex
from pathlib import Path

import pytest

from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.messages import written
from aimbot_lab.panel.server.replays import ResultLine, in_one, readable
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

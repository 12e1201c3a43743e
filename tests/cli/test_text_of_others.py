"""Names and notes that others have written, at the borders where they are shown."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aimbot_lab.cli.commands.judging import _explained
from aimbot_lab.cli.commands.record import _show_summary
from aimbot_lab.cli.commands.runs import _weights_text
from aimbot_lab.cli.text import table
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.experiment.analysis.learning_curve import CurvePoint, LearningCurve, draw_curves
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.result import RunResult, note
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.replay.episode import EpisodeSummary
from aimbot_lab.tracking.tracker import checked_run_name

HOSTILE = "x\x1b]0;owned\x07\r\ny\u202e"
MARKDOWN = "<script>alert(1)</script> [click](http://evil) **b** | c"
CURRICULUM = "name: a\nlessons: [{name: b, targets: {goto: 1}}]\n"


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_a_tables_cells_are_one_visible_line_each() -> None:
    text = table(("run", HOSTILE), [("a", HOSTILE), ("b", "c")])
    assert is_harmless(text)
    assert len(text.split("\n")) == 3


def test_what_a_replay_says_about_itself_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    told = EpisodeSummary(
        target="goto", difficulty=1, won=True, outcome="won", seconds=1.0, took="1.0 s",
        decisions=1, events={}, episode_return=0.0, reward_terms={}, trajectory_sha256="0" * 64,
        about={"name": HOSTILE, HOSTILE: 1},
    )  # fmt: skip
    _show_summary(told)
    assert is_harmless(capsys.readouterr().err)


def test_evaluate_says_the_name_of_the_stores_run_escaped() -> None:
    found: Any = SimpleNamespace(
        agent="best", run_id="a" * 32, name=HOSTILE, step=1, seed=2, advised=1.0
    )
    told = _explained(found, ())
    assert is_harmless(told)
    assert "owned" in told


def test_the_answer_of_a_runs_mailbox_is_shown_escaped() -> None:
    answer = {"target": HOSTILE, "lesson": 1, "step": 2, "weights": [1.0], "locked": [False]}
    assert is_harmless(_weights_text(answer, changed=False))


def test_a_run_cannot_be_called_by_what_turns_the_direction_of_writing() -> None:
    for name in ("a\u202eb", "a\u2066b", "a\x1b[31m", "a\nb"):
        with pytest.raises(ConfigurationError, match="must be one visible line"):
            checked_run_name(name)
    assert checked_run_name("Größe 目標 🎯") == "Größe 目標 🎯"


def test_lesson_names_are_text_in_a_runs_note() -> None:
    lesson = LessonReport(
        name=MARKDOWN, ended_at_step=1, episodes=1, window=1, win_rate=1.0, lower=0.1, upper=1.0
    )
    result = RunResult(
        run_id="a", name="b", status="FINISHED", tracking_uri="", experiment_id="1", seed=1,
        steps=1, seconds=1.0, steps_per_second=1.0, state_sha256="", lessons=(lesson,), cells=(),
        held_back_by=None, regressions=(), entries_waiting=0,
    )  # fmt: skip
    text = note(result)
    assert "alert(1)" in text
    for dangerous in ("<script", "](", "http://evil", "**b**", "b** | c"):
        assert dangerous not in text


def refused(*arguments: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "aimbot_lab", *arguments],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    return done.stderr.splitlines()


def test_a_wrong_call_is_refused_in_one_line(tmp_path: Path) -> None:
    (line,) = refused("run", "--no-such-option", "a.yaml", folder=tmp_path)
    assert "run: No such option" in line
    assert line.endswith("run --help says more)")
    (line,) = refused("run", folder=tmp_path)
    assert "run: Missing argument 'FILE'" in line


def test_a_refusal_repeats_no_long_names(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(CURRICULUM, encoding="utf-8")
    long = "k" * 10_000
    for override in (f"{long}=1", f"train.{long}=1", f"name={long}"):
        with pytest.raises(ConfigurationError) as caught:
            load_curriculum(path, [override])
        assert max(map(len, caught.value.faults)) <= 1_000


def test_a_name_with_dollars_is_no_formula_in_a_picture(tmp_path: Path) -> None:
    curve = LearningCurve((CurvePoint(0, 0.0), CurvePoint(100, 1.0)), ())
    draw_curves({rf"$\frac{HOSTILE}$": [curve]}, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 0

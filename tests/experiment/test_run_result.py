"""What a run says of itself: outcome, note, and the way to look at it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aimbot_lab.cli.run_text import resume_command, summary, view_command
from aimbot_lab.curriculum.reports import CellReport, LessonReport
from aimbot_lab.experiment.runs.result import RunResult, note, outcome

PASSED = LessonReport(
    *("open ground", 9000, 800, 120, 0.9, 0.83, 1.0, "win_rate", 0.8),
    evidence=22.14,
    evidence_needed=20.0,
)
OPEN = LessonReport("two | doors", None, 50, 50, 0.5, 0.37, 0.63)
AHEAD = LessonReport("all levels", None, 0, 0, None, 0.0, 1.0)
WEAK = CellReport("goto", 5, 20, 4, 0.2, 0.08, 0.42)
UNSEEN = CellReport("free", 0, 0, 0, None, 0.0, 1.0)
RESULT = RunResult(
    run_id="r1",
    name="goto",
    status="FAILED",
    tracking_uri="sqlite:////data/mlflow.db",
    experiment_id="1",
    seed=3,
    steps=10_000,
    seconds=2.0,
    steps_per_second=5000.0,
    state_sha256="0" * 64,
    lessons=(PASSED, OPEN, AHEAD),
    cells=(WEAK, UNSEEN),
    held_back_by=(WEAK,),
    regressions=(),
    entries_waiting=0,
)


def test_the_outcome_names_the_lesson_and_what_held_it_back() -> None:
    assert outcome(RESULT) == (
        "Steps spent in lesson 2 (two | doors); held back by goto 5 at 20.0 %."
    )
    unseen = replace(RESULT, held_back_by=(UNSEEN,))
    assert outcome(unseen).endswith("held back by free (no episode counted yet).")
    short = replace(RESULT, held_back_by=())
    assert outcome(short) == "Steps spent in lesson 2 (two | doors)."
    assert outcome(replace(RESULT, status="KILLED")) == "Stopped in lesson 2 (two | doors)."
    assert outcome(replace(RESULT, status="FINISHED")) == "All steps taken."
    measured = replace(RESULT, held_back_by=(), missing="2 of 100 episodes")
    assert outcome(measured) == "Steps spent in lesson 2 (two | doors); missing: 2 of 100 episodes."
    whole = replace(RESULT, status="FINISHED", lessons=(PASSED,))
    assert outcome(whole) == "All 1 lessons passed."


def test_the_note_is_markdown_with_every_lesson_and_cell() -> None:
    text = note(RESULT)
    rows = [line.replace("&emsp;", "") for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows[:5]}) == 1
    proof = "win rate > 0.8 | 22.1 of 20"
    assert f"| 1 | open ground | 9,000 | 800 | {proof} | 90.0 % | 83.0 % to 100.0 % | 120 |" in rows
    assert "| 2 | two &#124; doors | - | 50 | - | - | 50.0 % | 37.0 % to 63.0 % | 50 |" in rows
    assert "| 3 | all levels | - | 0 | - | - | - | - | - |" in rows
    assert "| goto 5 | 20 | 20.0 % | 8.0 % to 42.0 % |" in rows
    assert "aimbot-lab run resolved.yaml" in text


def test_a_run_that_can_go_on_says_how() -> None:
    stopped = replace(RESULT, status="KILLED", resumes_at=0)
    spent = replace(RESULT, resumes_at=9_000)
    assert "`aimbot-lab resume r1` resumes it." in note(stopped)
    assert "`aimbot-lab resume r1 --set train.total_steps=N` resumes it." in note(spent)
    assert "resume" not in note(RESULT)
    assert resume_command(stopped, None).endswith(" resume r1")
    more = " resume r1 --set train.total_steps=20000 --data-dir '/d x'"
    assert resume_command(spent, Path("/d x")).endswith(more)
    assert resume_command(RESULT, None) == ""


def test_the_summary_shows_over_how_many_episodes_a_rate_was_taken() -> None:
    lines = summary(RESULT, width=120).splitlines()
    (passed,) = (line for line in lines if "open ground" in line)
    assert passed.split("  ")[0] == "1"
    for part in (
        "  800  ",
        "  win rate > 0.8  ",
        "  22.1 of 20  ",
        "  120  ",
        "0.900 [0.830, 1.000]",
    ):
        assert part in f"{passed}  "


def test_the_summary_shows_the_proof_of_a_passed_lesson_at_every_width() -> None:
    for width in (60, 70, 80, 100, None):
        lines = summary(RESULT, width=width).splitlines()
        (passed,) = (line for line in lines if line.startswith("1 "))
        assert "win rate > 0.8  22.1 of 20" in passed
        assert width is None or max(map(len, lines)) <= width
    assert "10,000 steps in 0:02 of training (5,000 steps/s)" in lines[1]


def test_the_way_to_look_of_a_training_of_several_can_be_pasted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    for script in ("cli/tied_process.py", "__main__.py"):
        monkeypatch.setattr("sys.argv", [f"/lib/aimbot_lab/{script}", "run"])
        assert view_command("sqlite:///x/mlflow.db", None) == f"{sys.executable} -m aimbot_lab ui"


@pytest.mark.parametrize(
    ("uri", "data_dir", "ending"),
    [
        ("https://example.org/mlflow", None, "https://example.org/mlflow"),
        ("sqlite:////data/mlflow.db", None, " ui"),
        ("sqlite:////d x/mlflow.db", Path("/d x"), " ui --data-dir '/d x'"),
        ("postgresql://db/runs", None, " ui --tracking-uri postgresql://db/runs"),
    ],
)
def test_the_way_to_look_can_be_pasted(uri: str, data_dir: Path | None, ending: str) -> None:
    assert view_command(uri, data_dir).endswith(ending)

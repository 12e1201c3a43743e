"""What a run is called and says of itself, and what it keeps of evaluations and films."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.cli.text import resume_command, summary, view_command
from aimbot_lab.curriculum.reports import CellReport, LessonReport
from aimbot_lab.evaluation.episodes import CellScore, Score
from aimbot_lab.evaluation.temperature import ADVISED, COOLER
from aimbot_lab.experiment.analysis.evaluation import Evaluated, PlayerScores, evaluation_record
from aimbot_lab.experiment.analysis.recording import MAX_FILMS, film_record
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import (
    RunResult,
    describe_run,
    flat_settings,
    git_tags,
    harmless_settings,
    note,
    outcome,
    with_section,
)
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.replay.episode import Replay
from aimbot_lab.tracking.history import Addition
from aimbot_lab.tracking.journal_tracker import RunDescription
from aimbot_lab.tracking.tracker import RunSummary
from aimbot_lab.training.agents.agent_files import SavedAgent
from tests.replay.recorded_episodes import replay_of

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
    **{"run_id": "r1", "name": "goto", "status": "FAILED", "experiment_id": "1", "seed": 3},
    **{"tracking_uri": "sqlite:////data/mlflow.db", "steps": 10_000, "seconds": 2.0},
    **{"steps_per_second": 5000.0, "state_sha256": "0" * 64, "entries_waiting": 0},
    lessons=(PASSED, OPEN, AHEAD),
    cells=(WEAK, UNSEEN),
    held_back_by=(WEAK,),
    regressions=(),
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "The steps ran out in lesson 2 (two | doors); held back by goto 5 at 20.0 %."),
        (
            {"held_back_by": (UNSEEN,)},
            "The steps ran out in lesson 2 (two | doors); held back by free (no episode counted "
            "yet).",
        ),
        ({"held_back_by": ()}, "The steps ran out in lesson 2 (two | doors)."),
        (
            {"held_back_by": (), "missing": "2 of 100 episodes"},
            "The steps ran out in lesson 2 (two | doors); missing: 2 of 100 episodes.",
        ),
        ({"status": "KILLED"}, "Stopped in lesson 2 (two | doors)."),
        ({"status": "FINISHED"}, "All steps taken."),
        ({"status": "FINISHED", "lessons": (PASSED,)}, "The lesson passed."),
    ],
)
def test_the_outcome_names_the_lesson_and_what_held_it_back(
    changes: dict[str, Any], said: str
) -> None:
    assert outcome(replace(RESULT, **changes)) == said


def test_the_note_is_markdown_with_every_lesson_and_cell() -> None:
    text = note(RESULT)
    rows = [line.replace("&emsp;", "") for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows[:5]}) == 1
    proof = "win rate > 80 % | 22.1 of 20"
    assert {
        f"| 1 | open ground | 9,000 | 800 | {proof} | 90.0 % | 83.0 % to 100.0 % | 120 |",
        "| 2 | two &#124; doors | - | 50 | - | - | 50.0 % | 37.0 % to 63.0 % | 50 |",
        "| 3 | all levels | - | 0 | - | - | - | - | - |",
        "| goto 5 | 20 | 20.0 % | 8.0 % to 42.0 % |",
    } <= {*rows}
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


def test_the_summary_shows_the_proof_of_a_passed_lesson_at_every_width() -> None:
    for width in (60, 70, 80, 100, 120, None):
        lines = summary(RESULT, width=width).splitlines()
        (passed,) = (line for line in lines if line.startswith("1 "))
        assert "win rate > 80 %  22.1 of 20" in passed
        assert width is None or max(map(len, lines)) <= width
        if width == 120:  # wide enough for the episodes, and for those of the rate
            parts = ["  open ground  ", "  800  ", "  120  ", "90.0 % [83.0, 100.0]"]
            assert [part for part in parts if part not in f"{passed}  "] == []
    assert "10,000 steps in 0:02 of training (5,000 steps/s)" in lines[1]


def test_the_way_to_look_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = view_command("sqlite:////d x/mlflow.db", Path("/d x"))
    assert found.endswith(" ui --data-dir '/d x'")
    found = view_command("postgresql://db/runs", None)
    assert found.endswith(" ui --tracking-uri postgresql://db/runs")
    monkeypatch.setattr("shutil.which", lambda _: None)
    for script in ("cli/stopping.py", "__main__.py"):  # as of a training of several
        monkeypatch.setattr("sys.argv", [f"/lib/aimbot_lab/{script}", "run"])
        assert view_command("sqlite:///x/mlflow.db", None) == f"{sys.executable} -m aimbot_lab ui"


TEXT = """
name: one
lessons:
  - name: only
    targets: {goto: 1}
train: {algo: hybrid_ppo, network: {layers: [32, 16]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path / "one.yaml"


def described(file: Path, *overrides: str, name: str | None = None) -> RunDescription:
    return describe_run(load_curriculum(file, overrides), name)


def test_a_run_without_a_name_is_told_by_its_seed(file: Path) -> None:
    assert described(file, "seed=4").name == "one seed 4"
    assert described(file, "seed=4", name="mine").name == "mine"


def test_parameters_hold_defaults_by_the_keys_of_set_at_most_a_hundred(file: Path) -> None:
    params = described(file, "env.rays.tags=one_hot").params
    assert (
        params.items()
        >= {
            **{"train.network.layers": "32 16", "env.rays.tags": "one_hot", "train.aim": "bins"},
            **{"train.clip_range": "0.2", "train.gae_lambda": "0.95", "train.masks": "False"},
            "env.rewards.in_area": "5.0",
        }.items()
    )
    assert len(params) <= 100
    lessons = "".join(
        f"  - {{name: l{number}, targets: {{goto: 1}}, "
        f"completion_criteria: {{threshold: 0.{number + 10}}}}}\n"
        for number in range(40)
    )
    file.write_text(f"name: many\nlessons:\n{lessons}", encoding="utf-8")
    params = described(file).params
    assert params["lessons.39.completion_criteria.threshold"] == "0.49"
    assert params["lessons"] == "40"
    assert len(params) <= 100
    assert dict(flat_settings({"a": {"b": (1, 2.5)}})) == {"a.b": "1 2.5"}
    assert dict(flat_settings({"presets": ("a", "b")})) == {"presets.0": "a", "presets.1": "b"}


def kinds(file: Path, *overrides: str) -> set[str]:
    """The tags of runs without and with each of `overrides`."""
    runs = ((), *((one,) for one in overrides))
    return {described(file, *one).tags["lab.config"] for one in runs}


def test_seeds_names_and_threads_that_change_no_result_make_no_other_kind(file: Path) -> None:
    harmless = ("name=two", "env.threads=2", "train.torch_threads=3", "train.checkpoint_every=9")
    others = ("seed=2", "tracking.experiment=x", "evaluation.every=1000")
    assert len(kinds(file, *harmless, *others)) == 1
    assert len(kinds(file, "train.gamma=0.98")) == 2
    keys = {override.partition("=")[0] for override in harmless}
    assert keys == harmless_settings(load_curriculum(file).config.train)
    file.write_text(TEXT.replace("hybrid_ppo", "hybrid_ppo, engine: torch"), encoding="utf-8")
    assert len(kinds(file, "train.torch_threads=3")) == 2


def test_a_commit_and_whether_files_differ_from_it_are_told(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert git_tags(tmp_path / "missing") == {}
    git("init", "--quiet")
    assert git_tags(tmp_path) == {}
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "--quiet", "-m", "one")
    (tmp_path / "new").write_text("untracked")
    commit = git("rev-parse", "HEAD")
    told = git_tags(tmp_path)
    assert (told["mlflow.source.git.commit"], told["lab.git_dirty"]) == (commit, "false")
    (tmp_path / "a").write_text("2")
    assert git_tags(tmp_path)["lab.git_dirty"] == "true"


def scores(win_rate: float) -> PlayerScores:
    numbers = (100, int(100 * win_rate), win_rate, win_rate - 0.1, win_rate + 0.1, None, -3.0)
    cells = tuple(CellScore(*numbers, "goto", level) for level in (1, 2))
    return PlayerScores(Score(*numbers), cells)


EVALUATED = Evaluated(
    **{"run_id": "abc", "name": "goto", "agent": "last", "step": 1000, "seed": 1},
    **{"episodes": 100, "temperature": COOLER, "advised": ADVISED},
    players={
        "temperature 0.5": scores(0.9),
        "likeliest action": scores(0.8),
        "random": scores(0.1),
    },
)


def test_a_temperature_is_better_where_its_interval_lies_above_that_of_the_advised_one() -> None:
    assert EVALUATED.clearly_better() is None  # the advised one was not played

    def better(sampled: float, cooler: float, likeliest: float, **also: Any) -> Any:
        rates = {"sampled": sampled, "temperature 0.5": cooler, "likeliest action": likeliest}
        players = {name: scores(rate) for name, rate in rates.items()}
        found = replace(EVALUATED, players=players, **also)
        assert found.as_json().get("clearly_better") == found.clearly_better()
        return found.clearly_better()

    assert better(0.5, 0.6, 0.69) is None
    assert better(0.5, 0.6, 0.71) == 0.0
    assert better(0.5, 0.8, 0.71) == 0.5
    assert better(0.5, 0.8, 0.71, has_wins=False) is None  # no interval of returns is known


def test_the_first_player_gives_the_numbers_and_the_others_their_win_rate() -> None:
    record = evaluation_record(EVALUATED, "")
    assert record.step == 0
    assert record.metrics == {
        names.TEST_WIN_RATE: 0.9,
        names.TEST_WIN_RATE_LOWER: 0.8,
        names.TEST_WIN_RATE_UPPER: 1.0,
        names.TEST_RETURN: -3.0,
        names.TEST_TEMPERATURE: 0.5,
        "test/win_rate/goto/1": 0.9,
        "test/win_rate/goto/2": 0.9,
        names.player_win_rate("likeliest action"): 0.8,
        names.player_win_rate("random"): 0.1,
    }


def test_the_note_gains_a_section_and_a_second_one_replaces_it_where_it_stands() -> None:
    before = "**All lessons passed.**\n\n### Lessons\n\n| a |\n\n### Last\n\nb"
    once = evaluation_record(EVALUATED, before).tags["mlflow.note.content"]
    assert once.startswith(before)
    assert "| goto 2&emsp; | 90.0 % (80.0 % to 100.0 %)&emsp; | 80.0 %" in once
    assert evaluation_record(EVALUATED, once).tags["mlflow.note.content"] == once
    note = with_section(with_section("top", "A", "one"), "AB", "two")
    assert with_section(note, "A", "new") == "top\n\n### A\n\nnew\n\n### AB\n\ntwo"
    assert with_section("", "A", "one") == "### A\n\none"


RUN = RunSummary("r1", "goto", "goto", "4", "FINISHED", datetime.now(UTC), None, {}, {})
UNUSED: Any = None
SAVED = SavedAgent(UNUSED, UNUSED, UNUSED, {"step": 5000})
AGENT = TrackedAgent(RUN, "best", UNUSED, SAVED)
BEFORE = "**All lessons passed.**\n\n### Lessons\n\n| a |"


@cache  # not made on import: a kernel would be compiled while all workers wait
def replay() -> Replay:
    return replace(replay_of("goto", time_limit=0.3), about={"player": "temperature 0.5"})


def record(name: str, note: str = BEFORE) -> Addition:
    return film_record(Path("/films") / name, [replay(), replay()], agent=AGENT, note=note)


def note_after(*names: str) -> str:
    note = BEFORE
    for name in names:
        note = record(name, note).tags["mlflow.note.content"]
    return note


def test_the_note_gains_a_line_that_leads_to_each_of_the_newest_films() -> None:
    assert note_after("a.mp4") == BEFORE + (
        "\n\n### Films\n\n- [a.mp4](#/experiments/4/runs/r1/artifacts/videos/a.mp4"
        "?workflowType=machine_learning): best agent, saved at step 5,000; "
        "won 0 of 2 episodes, temperature 0.5"
    )
    assert note_after("a.mp4", "a.gif", "a.mp4") == note_after("a.gif", "a.mp4")
    note = note_after(*(f"{number}.gif" for number in range(MAX_FILMS + 2)))
    assert note.count("- [") == MAX_FILMS
    assert "[1.gif]" not in note
    assert f"[{MAX_FILMS + 1}.gif]" in note
    odd = record("my [film](1)\\2.gif")
    assert odd.files == {"videos/my-film-1-2.gif": Path("/films/my [film](1)\\2.gif")}
    assert "- [my-film-1-2.gif](#/" in odd.tags["mlflow.note.content"]

"""Tables and names as text: digits, widths, processes, and what others have written."""

import errno
import json
import math
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click import BadParameter
from terminal_session import TerminalSession
from tiny_runs import begin_in

import aimbot_lab
from aimbot_lab.cli.commands.judging import _explained
from aimbot_lab.cli.commands.record import _show_summary
from aimbot_lab.cli.commands.runs import _weights_text
from aimbot_lab.cli.options import ONE, Span, SpanType
from aimbot_lab.cli.text import (
    Fit,
    cut,
    duration,
    shortened_number,
    stacked_table,
    table,
    write_output,
)
from aimbot_lab.curriculum.reports import LessonReport
from aimbot_lab.experiment.analysis.learning_curve import LearningCurve, draw_curves
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.result import RunResult, note
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shown_evidence, shown_number, shown_return
from aimbot_lab.replay.episode import EpisodeSummary

HEAD = ("#", "lesson", "passed at step", "episodes", "of the last", "win rate [95 %]")
ROWS = [
    (1, "open ground", "1,234,567", "12,345", 500, "91.2 % [88.5, 93.4]"),
    (2, "a rather long name of a lesson", "-", "0", "-", "-"),
]


def fitted(width: int | None) -> list[str]:
    return table(HEAD, ROWS, Fit(width, cut="lesson", spare=["of the last"])).splitlines()


def test_without_a_width_a_table_is_as_wide_as_its_entries() -> None:
    assert fitted(None) == table(HEAD, ROWS).splitlines() == fitted(200)
    head, first, second = fitted(None)
    assert first.index("91.2") == head.index("win rate")
    assert "a rather long name of a lesson" in second


def test_heads_give_way_first() -> None:
    lines = fitted(90)
    assert max(map(len, lines)) <= 90
    assert lines[0].split() == ["passed", "at", "of", "the"]
    assert lines[1].split()[:5] == ["#", "lesson", "step", "episodes", "last"]
    assert "a rather long name of a lesson" in lines[-1]


def test_at_60_columns_a_name_is_cut_and_no_number() -> None:
    lines = fitted(60)
    assert max(map(len, lines)) <= 60
    for whole in ("1,234,567", "12,345", "91.2 % [88.5, 93.4]", "open ground"):
        assert whole in lines[-2]
    assert "500" not in lines[-2]  # the spare column
    assert "a rather long …" in lines[-1]


def test_columns_that_do_not_fit_stand_below_beside_what_tells_rows_apart() -> None:
    head = ("name", "threads", "engine", "steps per second", "simulator", "policy")
    rows = [
        ("ours", 1, "fused", "5,882", "3.1 %", "11 %"),
        ("ours", 2, "fused", "9,001", "9 %", "-"),
    ]
    assert stacked_table(head, rows, None) == stacked_table(head, rows, 70) == table(head, rows)
    assert stacked_table(head, rows, 35).splitlines() == [
        "                       steps per",
        "name  threads  engine  second",
        "ours  1        fused   5,882",
        "ours  2        fused   9,001",
        "",
        "name  threads  simulator  policy",
        "ours  1        3.1 %      11 %",
        "ours  2        9 %        -",
    ]


def test_a_table_may_have_no_rows_a_cut_text_is_marked_and_durations_read_as_clocks() -> None:
    assert table(("a", "b"), []) == "a  b"
    assert (cut("lesson", 6), cut("lessons", 6)) == ("lesson", "lesso…")
    assert (duration(59.6), duration(61), duration(3661)) == ("1:00", "1:01", "1:01:01")


def test_every_command_prints_its_tables_by_the_same_function() -> None:
    """Rich draws what lives on the terminal, no result: that looks the same in a file."""
    cli = Path(aimbot_lab.__file__).parent / "cli"
    drawing = {file.name for file in cli.rglob("*.py") if "rich.table" in file.read_text("utf-8")}
    assert drawing == {"live.py"}


def test_a_number_keeps_three_digits_and_a_return_four_and_all_whole_ones() -> None:
    shown = [*map(shortened_number, (-0.0371, 0.93, 12.34, 999.4, 1234.5))]
    assert shown == ["-0.0371", "0.93", "12.3", "999", "1,234"]
    assert [*map(shown_return, (None, -12.346, 999.94, 999.96, -1308.4, 1234567.0))] == [
        *("-", "-12.35", "999.9", "1,000", "-1,308", "1,234,567")
    ]
    assert shown_return(1000.4, 998.46, 1002.0) == "1,000 [998.5, 1,002]"
    assert (shown_number(1308, "+"), shown_number(-0.5, "+")) == ("+1,308", "-0.5")


HOSTILE = "x\x1b]0;owned\x07\r\ny\u202e"
MARKDOWN = "<script>alert(1)</script> [click](http://evil) **b** | c"
CURRICULUM = "name: a\nlessons: [{name: b, targets: {goto: 1}}]\n"


def is_harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


def test_a_tables_cells_are_one_visible_line_each() -> None:
    text = table(("run", HOSTILE), [("a", HOSTILE), ("b", "c")])
    assert is_harmless(text)
    assert len(text.split("\n")) == 3


def test_what_a_replay_a_run_of_the_store_and_its_mailbox_say_is_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = EpisodeSummary(
        target="goto", difficulty=1, won=True, outcome="won", seconds=1.0, took="1.0 s",
        decisions=1, events={}, episode_return=0.0, reward_terms={}, trajectory_sha256="0" * 64,
        about={"name": HOSTILE, HOSTILE: 1},
    )  # fmt: skip
    _show_summary(told)
    assert is_harmless(capsys.readouterr().err)
    found: Any = SimpleNamespace(
        agent="best",
        run_id="a" * 32,
        name=HOSTILE,
        step=1,
        seed=2,
        advised=1.0,
        clearly_better=lambda: None,
    )
    explained = _explained(found, ())
    assert is_harmless(explained)
    assert "owned" in explained
    answer = {"target": HOSTILE, "lesson": 1, "step": 2, "weights": [1.0], "locked": [False]}
    assert is_harmless(_weights_text(answer, changed=False))


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


@pytest.mark.parametrize(
    ("words", "what"),
    [(["--no-such-option", "a.yaml"], "No such option"), ([], "Missing argument 'FILE'")],
)
def test_a_wrong_call_is_refused_in_one_line(tmp_path: Path, words: list[str], what: str) -> None:
    process = begin_in(tmp_path, "run", *words)
    _, said = process.communicate()
    (line,) = said.splitlines()
    assert process.returncode == 2
    assert f"run: {what}" in line
    assert line.endswith("run --help says more)")


def test_a_refusal_repeats_no_long_names(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(CURRICULUM, encoding="utf-8")
    long = "k" * 10_000
    for override in (f"{long}=1", f"train.{long}=1", f"name={long}"):
        with pytest.raises(ConfigurationError) as caught:
            load_curriculum(path, [override])
        assert max(map(len, caught.value.faults)) <= 1_000


def test_a_name_with_dollars_is_no_formula_in_a_picture(tmp_path: Path) -> None:
    curve = LearningCurve(((0, 0.0), (100, 1.0)), ())
    draw_curves({rf"$\frac{HOSTILE}$": [curve]}, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 0


@pytest.mark.parametrize("span", [ONE, Span(4, 4), Span(2, 64)])
def test_a_span_is_read_as_it_is_written(span: Span) -> None:
    kind = SpanType(64)
    assert kind.convert(str(span), None, None) == kind.convert(span, None, None) == span


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", "0 is not in the range 1<=x<=64"),
        ("4:2", "'4:2' is not MIN:MAX with MIN at most MAX"),
        ("4:", "'4:' is not MIN:MAX"),
        ("-1", "'-1' is not a number"),
        ("9" * 5000, "9 is not in the range 1<=x<=64"),
    ],
)
def test_what_is_no_span_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(BadParameter) as told:
        SpanType(64).convert(text, None, None)
    assert wanted in told.value.message


TELL_FLAGS = """
import json, subprocess, sys, termios
from aimbot_lab.cli.stopping import quiet_keys

def flags():
    local = termios.tcgetattr(2)[3]
    return [bool(local & termios.ECHOCTL), bool(local & termios.NOFLSH)]

def told():
    seen = []
    try:
        with quiet_keys(2):
            seen.append(flags())
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        seen.append(flags())
    print(json.dumps(seen))

"""
IN_BACKGROUND = (
    TELL_FLAGS
    + """
if len(sys.argv) > 1:
    told()
else:
    command = [sys.executable, "-c", sys.orig_argv[2], "again"]
    child = subprocess.Popen(command, process_group=0)
    try:
        child.wait(300)
    finally:
        child.kill()
"""
)


def test_keys_are_quiet_inside_and_as_before_after_an_exception() -> None:
    with TerminalSession("-c", TELL_FLAGS + "told()") as session:
        before = session.flags()
        assert before & termios.ECHOCTL
        assert not before & termios.NOFLSH
        code, output = session.finish()
        assert code == 0, session.shown
        assert session.flags() == before
    assert json.loads(output) == [[False, True], [True, False]]


def test_a_background_process_leaves_the_terminal_alone_and_is_not_halted() -> None:
    with TerminalSession("-c", IN_BACKGROUND) as session:
        code, output = session.finish()
        assert code == 0, session.shown
    assert json.loads(output) == [[True, False], [True, False]]


def test_where_there_is_no_terminal_nothing_happens() -> None:
    code = "from aimbot_lab.cli.stopping import quiet_keys\n"
    code += "with quiet_keys(2): print('inside')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("inside\n", "")


def test_a_disk_that_fills_leaves_the_output_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        path.write_text("ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    output = tmp_path / "page.html"
    for before in ([], [output]):
        with monkeypatch.context() as disk:
            disk.setattr(Path, "write_bytes", full)
            with pytest.raises(ConfigurationError, match=r"page\.html: can't be written: No space"):
                write_output("half", output)
        assert [*tmp_path.iterdir()] == before
        write_output("whole", output)
    assert output.read_text() == "whole"


@pytest.mark.parametrize(
    ("found", "needed", "words"),
    [
        (22.14, 20.0, "22.1 of 20"),
        (1234.5, 20.0, "1,234 of 20"),
        (2e6, 20.0, "1,000,000+ of 20"),
        (2e6, 1e8, "2e+06 of 1e+08"),
        (math.inf, 1e8, "1,000,000+ of 1e+08"),
    ],
)
def test_evidence_is_odds_that_are_cut_where_no_more_are_needed(
    found: float, needed: float, words: str
) -> None:
    assert shown_evidence(found, needed) == words

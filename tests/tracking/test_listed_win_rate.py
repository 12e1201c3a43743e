"""The one win rate that a list shows of a run: the best supported one, with what it is of."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.commands.runs import runs as runs_command
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking import history
from aimbot_lab.tracking.run_summary import RunSummary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = RunSummary("a" * 32, "one", "walks", "1", "FINISHED", NOW, NOW, {}, {})
LEARNING = {
    names.LEARNING_WIN_RATE: 0.9,
    names.LEARNING_WIN_RATE_LOWER: 0.8,
    names.LEARNING_WIN_RATE_UPPER: 0.95,
}
EVAL = {
    names.EVAL_WIN_RATE: 0.6,
    names.EVAL_WIN_RATE_LOWER: 0.55,
    names.EVAL_WIN_RATE_UPPER: 0.65,
}
HANDFUL = {names.LESSON_WIN_RATE: 1.0, names.LESSON_EPISODES: 3.0}


@pytest.mark.parametrize(
    ("metrics", "value", "measure"),
    [
        ({**LEARNING, **EVAL, **HANDFUL}, 0.6, "eval/win_rate"),
        (
            {**LEARNING, **EVAL, names.LEARNING_WIN_RATE_LOWER: 0.89},
            0.9,
            "learning/win_rate",
        ),
        ({**LEARNING, **HANDFUL}, 0.9, "learning/win_rate"),
        ({names.LEARNING_WIN_RATE: 0.5, **EVAL}, 0.6, "eval/win_rate"),
        ({**LEARNING, names.EVAL_WIN_RATE: float("nan")}, 0.9, "learning/win_rate"),
    ],
)
def test_a_listed_win_rate_is_the_one_with_the_narrowest_interval(
    metrics: dict[str, float], value: float, measure: str
) -> None:
    found = replace(RUN, metrics=metrics).win_rate
    assert found is not None
    assert (found.value, found.measure) == (value, measure)


def test_a_handful_of_a_lessons_episodes_makes_no_listed_win_rate() -> None:
    assert replace(RUN, metrics=HANDFUL).win_rate is None


def test_the_list_and_its_top_say_what_each_win_rate_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [
        replace(RUN, metrics={**EVAL, **HANDFUL}),
        replace(RUN, run_id="b" * 32, name="two", metrics=LEARNING),
        replace(RUN, run_id="c" * 32, name="three", metrics=HANDFUL),
    ]
    monkeypatch.setattr(history, "list_runs", lambda *_, **__: stored)
    listed = CliRunner().invoke(runs_command, ["--data-dir", str(tmp_path)]).stdout.splitlines()
    assert [line.split()[-2:] for line in listed[1:3]] == [["0.600", "eval"], ["0.900", "learning"]]
    assert listed[3].split()[-2:] == ["-", "-"]
    top = CliRunner().invoke(runs_command, ["--top", "3", "--data-dir", str(tmp_path)])
    assert [line.split()[1] for line in top.stdout.splitlines()[1:]] == ["two", "one"]

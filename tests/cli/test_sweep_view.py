"""What a person sees of a sweep: on a terminal, in a log, and at its end."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from aimbot_lab.cli.live import LiveSweepView
from aimbot_lab.cli.sweep_text import report_text, short_names, state_line
from aimbot_lab.cli.view import PlainSweepView
from aimbot_lab.sweep.coordinator import SweepSnapshot
from aimbot_lab.sweep.report import Confirmed, SweepReport, TrialReport


def trial(number: int, state: str, value: float | None) -> TrialReport:
    return TrialReport(
        number=number,
        state=state,
        params={"env.rewards.spin_penalty": 0.5, "env.rewards.facing": 2.0 + number},
        value=value,
        lower=None if value is None else value - 0.05,
        upper=None if value is None else value + 0.05,
        trainings=[],
        seconds=None if value is None else 61.0,
        host="here",
        deaths=0,
        reason=None,
        run_id=None,
    )


REPORT = SweepReport(
    name="rewards",
    storage="sqlite:///study.db",
    measure="win_rate",
    total=12,
    ended=2,
    status="running",
    trials=[trial(0, "done", 0.4), trial(1, "done", 0.6), trial(2, "running", None)],
    confirmed=[],
    best=1,
)
SNAPSHOT = SweepSnapshot(REPORT, {("search", 2): 0.5}, 125.0)
AGAIN = Confirmed(
    number=1,
    is_default=False,
    params={"env.rewards.spin_penalty": 0.5, "env.rewards.facing": 3.0},
    searched=0.6,
    value=0.52,
    lower=0.5,
    upper=0.54,
    trainings=[],
    gain=0.1,
    gain_lower=-0.02,
    gain_upper=0.22,
)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_live_table_shows_trials_best_and_time_left_and_fits(width: int) -> None:
    shown = StringIO()
    console = Console(file=shown, width=width, height=30, color_system=None)
    view = LiveSweepView("rewards", console)
    view.progress(SNAPSHOT)
    view.notice("a worker died (signal 9)")
    console.print(view.draw())
    text = shown.getvalue()
    assert all(len(line) <= width for line in text.splitlines())
    assert "2 of 12 trials ended" in text
    assert "signal 9" in text
    if width >= 160:
        assert "best so far" in text
        assert "about 2:05 left" in text
        assert "0.600 [0.550, 0.650]" in text


def test_a_log_gets_one_line_for_each_trial(capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainSweepView()
    view.progress(SNAPSHOT)
    view.progress(SNAPSHOT)
    view.progress(replace(SNAPSHOT, report=replace(REPORT, confirmed=[AGAIN])))
    lines = capsys.readouterr().err.splitlines()
    assert [line[9:] for line in lines] == [
        "trial 0 done: 0.400 [0.350, 0.450]  spin_penalty 0.5  facing 2",
        "trial 1 done: 0.600 [0.550, 0.650]  spin_penalty 0.5  facing 3",
        "trial 1 on fresh seeds: 0.520 [0.500, 0.540]  over defaults +0.100 [-0.020, +0.220]",
    ]


def test_a_confirmation_is_shown_as_a_bar_with_the_time_left() -> None:
    confirming = replace(REPORT, status="confirming", ended=3, total=3, to_confirm=4)
    snapshot = SweepSnapshot(replace(confirming, confirm_ended=1), {("confirm", 1): 0.5}, 125.0)
    shown = StringIO()
    console = Console(file=shown, width=160, height=30, color_system=None)
    view = LiveSweepView("rewards", console)
    view.progress(snapshot)
    console.print(view.draw())
    line = next(line for line in shown.getvalue().splitlines() if line.startswith("confirming"))
    assert "38%" in line
    assert "━" in line
    assert "1 of 4 confirmed on fresh seeds; about 2:05 left" in state_line(snapshot)


def test_a_report_ends_with_what_the_confirmation_found() -> None:
    done = replace(REPORT, status="done", ended=3, total=3)
    unclear = report_text(replace(done, confirmed=[AGAIN]))
    assert unclear.splitlines()[-1] == "no trial is clearly better than the defaults"
    clear = report_text(replace(done, confirmed=[replace(AGAIN, gain_lower=0.01)]))
    assert clear.splitlines()[-1] == "clearly better than the defaults: trial 1"
    fewer_steps = replace(AGAIN, gain=-0.1, gain_lower=-0.2, gain_upper=-0.01)
    steps = report_text(replace(done, maximizes=False, confirmed=[fewer_steps]))
    assert steps.splitlines()[-1] == "clearly better than the defaults: trial 1"
    named = replace(AGAIN, gain_lower=0.01, number=None, name="mine")
    assert "no trial" in report_text(replace(done, confirmed=[named])).splitlines()[-1]


def test_steps_that_were_spent_are_told_as_more() -> None:
    spent = replace(
        AGAIN, value=2e6, lower=None, upper=None, trainings=[{}] * 4, censored=3, gain=1e6,
        gain_lower=9e5, gain_upper=1.1e6, searched=None, number=None, name="greedy",
    )  # fmt: skip
    last = report_text(replace(REPORT, status="done", confirmed=[spent])).splitlines()
    row = next(line for line in last if line.startswith("greedy"))
    assert "> 2,000,000 (3 of 4 never passed)" in row
    assert "+1,000,000 [+900,000, +1,100,000]" in row


def test_the_state_names_the_best_with_its_interval() -> None:
    assert state_line(SNAPSHOT) == (
        "2 of 12 trials ended; about 2:05 left; "
        "best so far: trial 1  0.600 [0.550, 0.650]  spin_penalty 0.5  facing 3"
    )


def test_the_report_shows_both_numbers_of_the_best() -> None:
    text = report_text(replace(REPORT, status="done", ended=3, total=3, confirmed=[AGAIN]))
    row = next(line for line in text.splitlines() if "+0.100" in line)
    assert row.split() == ["1", "0.5", "3", "0.6", "0.520", "[0.500,", "0.540]", "+0.100",
                            "[-0.020,", "+0.220]"]  # fmt: skip
    assert "0.520 [0.500, 0.540] on fresh seeds" in text.splitlines()[1]


def test_keys_keep_their_sections_where_their_last_parts_are_alike() -> None:
    assert short_names(["env.gun.range", "env.rays.range"]) == ["env.gun.range", "env.rays.range"]


def test_a_value_of_the_search_that_is_a_lower_bound_says_so() -> None:
    again = replace(AGAIN, searched=2_000_000.0, value=2_000_000.0, lower=None, upper=None)
    again = replace(again, censored=2, searched_at_least=True)
    text = report_text(replace(REPORT, status="done", confirmed=[again]))
    assert re.search(r"> 2,000,000 +> 2,000,000 \(2 of ", text)

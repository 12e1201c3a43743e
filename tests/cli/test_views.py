"""The live table of a training, and what a person sees of a sweep."""

import io
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from aimbot_lab.cli.live import LiveSweepView, LiveView
from aimbot_lab.cli.stopping import STOPPING
from aimbot_lab.cli.text import lesson_line, promotion_line, report_text, state_line
from aimbot_lab.curriculum.reports import CellReport, CurriculumView, LessonReport, Measured
from aimbot_lab.foundation.episodes import wilson
from aimbot_lab.sweep.coordinator import SweepSnapshot
from aimbot_lab.sweep.report import Confirmed, SweepReport, TrialReport
from aimbot_lab.training.run_hooks import TrainingSnapshot

LONG_NAME = "a lesson whose name its author found hard to keep short, and did not"
CELLS = tuple(CellReport("attack", level, 100, 91, 0.91, 0.838, 0.952) for level in range(1, 6))


def snapshot(name: str = "narrow ways") -> TrainingSnapshot:
    view = CurriculumView(
        lesson=2,
        lessons=6,
        name=name,
        episodes=12_345,
        window=500,
        win_rate=wilson(456, 500),
        threshold=0.95,
        min_lesson_length=200,
        log_evidence=None,
        log_bound=None,
        cells=CELLS,
    )
    return TrainingSnapshot(123_456_789, 500_000_000, 4321.0, 123_456.0, view)


def drawn(
    width: int, *, name: str = "narrow ways", notices: Sequence[str] = (), stage: str = ""
) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=24)
    view = LiveView("goto", console)
    view.progress(snapshot(name))
    for notice in notices:
        view.notice(notice)
    if stage:
        view.stage(stage)
    with console.capture() as capture:
        console.print(view.draw())
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 110, 200])
@pytest.mark.parametrize("name", ["narrow ways", LONG_NAME])
def test_every_line_is_a_line(width: int, name: str) -> None:
    lines = drawn(width, name=name)
    # Head, steps, bar, head of the table, all, the cells.
    assert len(lines) == 4 + 1 + len(CELLS)
    assert max(map(len, lines)) <= width
    if width >= 40:
        assert all(line.split("]")[0].endswith(("93.4", "95.2")) for line in lines[4:])


@pytest.mark.parametrize("width", [60, 110])
def test_everything_that_matters_is_shown_whole(width: int) -> None:
    head, steps, bar, columns, pooled, *cells, notice = drawn(width, notices=[STOPPING])
    assert head == "goto  lesson 3 of 6: narrow ways"
    for part in ("123,456,789 of 500,000,000", "123,456", "at most 50:50 left"):
        assert part in steps
    assert set(bar.strip()) <= set("━╸╺")
    assert columns.split() == ["against", "95", "%", "win", "rate", "[95", "%]", "episodes"]
    assert pooled.endswith("91.2 % [88.4, 93.4]  500")
    assert [line.split("━")[0].strip(" ╸╺") for line in cells] == [
        f"attack {level}" for level in range(1, 6)
    ]
    assert all(line.endswith("91.0 % [83.8, 95.2]  100") for line in cells)
    assert notice == STOPPING


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.91, 0.95, 1.0, None])
def test_a_win_rates_bar_marks_the_threshold_and_has_its_colour(threshold: float | None) -> None:
    console = Console(file=io.StringIO(), width=110, force_terminal=True, color_system="truecolor")
    view = LiveView("goto", console)
    seen = snapshot()
    cells = tuple(
        CellReport("attack", level, 100, wins, wins / 100, 0.0, 1.0)
        for level, wins in enumerate((0, 40, 91, 100), start=1)
    )
    view.progress(replace(seen, view=replace(seen.view, threshold=threshold, cells=cells)))
    rows = console.render_lines(view.draw())[-len(cells) :]
    colours = set()
    for row, cell in zip(rows, cells, strict=True):
        bar = [(one, part.style) for part in row for one in part.text if one in "━┃"]
        marks = [place for place, (one, _) in enumerate(bar) if one == "┃"]
        wanted = [] if threshold is None else [min(round(threshold * len(bar)), len(bar) - 1)]
        assert marks == wanted
        rest = [style for one, style in bar if one == "━"]
        filled = [style for style in rest if style != console.get_style("bar.back")]
        assert abs(len(filled) / len(bar) - cell.win_rate) < 2 / len(bar)
        if filled and threshold is not None:
            reached = console.get_style("bar.finished")
            assert {style == reached for style in filled} == {cell.win_rate >= threshold}
        colours.update(map(str, filled))
    assert len(colours) == (1 if threshold in (None, 0.0) else 2)


def test_a_long_notice_is_told_whole_and_the_newest_are_kept() -> None:
    lines = drawn(60, notices=["one", "two", "word " * 30 + "end", STOPPING])
    assert "one" not in lines
    assert "two" in lines
    assert lines[-2].endswith("end")
    assert lines[-1] == STOPPING


def promoted(report: LessonReport, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        LiveView("goto", console).promotion(report, 1_234_567)
    (line,) = capture.get().splitlines()
    assert len(line) <= width
    return line


RATE = "win rate 91.2 % [90.2, 100.0]"
PROVEN = LessonReport(
    *("narrow ways", 1_234_567, 2_000, 500, 0.912, 0.902, 1.0, "win_rate", 0.9),
    evidence=22.14,
    evidence_needed=20.0,
)


@pytest.mark.parametrize("name", ["narrow ways", LONG_NAME])
def test_a_promotion_is_one_line_with_its_proof_at_every_width(name: str) -> None:
    report = replace(PROVEN, name=name)
    for width in (60, 80, 100):
        line = promoted(report, width)
        assert line.endswith("win rate > 90 %, evidence 22.1 of 20")
        assert "at step 1,234,567" in line
    line = promotion_line(report, 1_234_567)
    proof = f"{RATE} > 90 %, evidence 22.1 of 20"
    assert line == f"passed {name!r} at step 1,234,567 after 2,000 episodes: {proof}"
    assert promoted(report, 220) == f"✓ {line}"


@pytest.mark.parametrize(
    ("changes", "proof"),
    [
        ({"evidence": 5.1, "evidence_needed": 5.0}, f"{RATE} at 80 % > 90 %,"),
        ({"evidence": 7.4e12, "threshold": 0.5}, f"{RATE} > 50 %, evidence 1,000,000+ of"),
        ({"every_cell": True}, f"{RATE} > 90 % (each cell), evidence 22.1 of"),
        ({"measure": "reward", "threshold": 7.5}, "reward > 7.5, evidence 22.1 of 20"),
        ({"evidence": None, "value": 0.95, "rule": "own"}, "win rate 95 % > 90 %, by rule own"),
        ({"evidence": None, "value": 0.52, "measure": "progress"}, "progress 0.52 > 0.9"),
        ({"measure": None, "evidence": None}, RATE),  # an older run's
    ],
)
def test_every_lesson_says_by_what_it_was_passed(changes: dict, proof: str) -> None:
    line = promotion_line(replace(PROVEN, **changes), 1_234_567)
    assert line.startswith(f"passed 'narrow ways' at step 1,234,567 after 2,000 episodes: {proof}")


def test_a_stage_takes_the_place_of_the_table_and_a_notice_stays() -> None:
    assert drawn(60, notices=[STOPPING], stage="saving") == ["goto: saving ...", STOPPING]


def test_a_lesson_that_is_not_measured_by_wins_tells_its_measure() -> None:
    seen = snapshot("a")
    measured = replace(seen.view, threshold=None, measured=Measured("reward", 0.512345, 0.8))
    assert lesson_line(measured).endswith("]  reward 0.5123 against 0.8")
    unknown = replace(measured, measured=Measured("reward", None, 0.8))
    assert lesson_line(unknown).endswith("]  reward - against 0.8")
    assert "reward" not in lesson_line(seen.view)


def params(number: int) -> dict[str, object]:
    return {"env.rewards.spin_penalty": 0.5, "env.rewards.facing": 2.0 + number}


DONE = TrialReport(
    number=0,
    state="done",
    params=params(0),
    value=0.4,
    lower=0.35,
    upper=0.45,
    trainings=[],
    seconds=61.0,
    host="here",
    deaths=0,
    reason=None,
    run_id=None,
)
BEST = replace(DONE, number=1, params=params(1), value=0.6, lower=0.55, upper=0.65)
RUNNING = replace(
    DONE,
    number=2,
    state="running",
    params=params(2),
    value=None,
    lower=None,
    upper=None,
    seconds=None,
)
REPORT = SweepReport(
    name="rewards",
    storage="sqlite:///study.db",
    measure="win_rate",
    total=12,
    ended=2,
    status="running",
    trials=[DONE, BEST, RUNNING],
    confirmed=[],
    best=1,
)
SNAPSHOT = SweepSnapshot(REPORT, {("search", 2): 0.5}, 125.0)
AGAIN = Confirmed(
    number=1,
    is_default=False,
    params=params(1),
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


def test_the_state_names_the_best_with_its_interval() -> None:
    assert state_line(SNAPSHOT) == (
        "2 of 12 trials ended; about 2:05 left; "
        "best so far: trial 1  0.600 [0.550, 0.650]  spin_penalty 0.5  facing 3"
    )

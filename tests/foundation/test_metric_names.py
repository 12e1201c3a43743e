"""Names of tracked numbers: what a page shows by the alphabet begins with win rates."""

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.training.callbacks.report_callback import LEARNER_PREFIX


def section(name: str) -> str:
    return name.rpartition("/")[0]


def test_the_first_sections_hold_win_rates_over_steps_and_single_values_come_after_them() -> None:
    told = [value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)]
    sections = sorted({section(name) for name in [*told, f"{LEARNER_PREFIX}loss"]})
    assert sections[:2] == ["eval", "learning"]
    firsts = sorted(name for name in told if section(name) in sections[:2])
    assert firsts[:3] == ["eval/win_rate", "eval/win_rate_lower", "eval/win_rate_upper"]
    assert all("win_rate" in name for name in firsts)
    assert sections.index("test") > sections.index("lesson")


def test_a_measure_of_a_cell_has_one_form() -> None:
    assert names.of_cell(names.EVAL_WIN_RATE, Cell("goto", 3)) == "eval/win_rate/goto/3"
    assert names.of_cell(names.EVAL_WIN_RATE, Cell("free", 0)) == "eval/win_rate/free"
    assert names.of_cell(names.EVAL_WIN_RATE, Cell("", 0)) == "eval/win_rate"

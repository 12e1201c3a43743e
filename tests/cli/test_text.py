"""Tables fit the terminal where that can be had, and never lose a digit."""

from pathlib import Path

import aimbot_lab
from aimbot_lab.cli.text import Fit, cut, duration, shortened_number, table

HEAD = ("#", "lesson", "passed at step", "episodes", "of the last", "win rate [95 %]")
ROWS = [
    (1, "open ground", "1,234,567", "12,345", 500, "0.912 [0.885, 0.934]"),
    (2, "a rather long name of a lesson", "-", "0", "-", "-"),
]


def fitted(width: int | None) -> list[str]:
    return table(HEAD, ROWS, Fit(width, cut="lesson", spare=["of the last"])).splitlines()


def test_without_a_width_a_table_is_as_wide_as_its_entries() -> None:
    assert fitted(None) == table(HEAD, ROWS).splitlines() == fitted(200)
    head, first, second = fitted(None)
    assert first.index("0.912") == head.index("win rate")
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
    for whole in ("1,234,567", "12,345", "0.912 [0.885, 0.934]", "open ground"):
        assert whole in lines[-2]
    assert "500" not in lines[-2]  # the spare column
    assert "a rather long…" in lines[-1]


def test_a_table_without_rows_has_its_heads() -> None:
    assert table(("a", "b"), []) == "a  b"


def test_a_cut_text_is_marked() -> None:
    assert cut("lesson", 6) == "lesson"
    assert cut("lessons", 6) == "lesso…"


def test_durations_read_as_clocks() -> None:
    assert (duration(59.6), duration(61), duration(3661)) == ("1:00", "1:01", "1:01:01")


def test_every_command_prints_its_tables_by_the_same_function() -> None:
    """Rich draws what lives on the terminal, no result: that looks the same in a file."""
    cli = Path(aimbot_lab.__file__).parent / "cli"
    drawing = {file.name for file in cli.rglob("*.py") if "rich.table" in file.read_text("utf-8")}
    assert drawing == {"live.py"}


def test_a_number_of_any_size_keeps_three_digits() -> None:
    assert [*map(shortened_number, (-0.0371, 0.93, 12.34, 999.4, 1234.5))] == [
        "-0.0371",
        "0.93",
        "12.3",
        "999",
        "1,234",
    ]

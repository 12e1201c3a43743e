"""Small parts: YAML nodes with positions, names of numbers, and texts of others."""

import ast
import math
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.yaml_reader import read_yaml
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.shown_text import (
    MAX_LINE,
    html_text,
    markdown_text,
    one_line,
    refusal_lines,
    terminal_lines,
)
from aimbot_lab.foundation.yaml_files import (
    FileFormat,
    FileReader,
    FileText,
    Position,
    YamlError,
    compose,
    position_after,
    position_of,
)
from aimbot_lab.training.callbacks.report_callback import LEARNER_PREFIX

PACKAGE = Path(__file__).parent.parent.parent / "aimbot_lab"


def composers(path: Path) -> bool:
    """Whether the file at `path` has PyYAML read a text, or derives a reader of its own."""
    text = path.read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text)) if "yaml." in text else ()
    names = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return any(
        name.startswith("yaml.") and name.endswith(("Loader", "load", "compose")) for name in names
    )


def test_every_kind_of_file_is_read_by_the_one_reader() -> None:
    assert [path.name for path in PACKAGE.rglob("*.py") if composers(path)] == ["yaml_files.py"]


NUMBERS: dict[str, float | None] = {
    "12": 12,
    "1_000": 1000,
    "1e-4": 1e-4,
    "+.5": 0.5,
    "!!float '2'": 2.0,
    "010": None,
    "12:30": None,
    "0x10": None,
    "'2'": None,
    "١٢": None,
    "true": None,
    "yes": None,
    "~": None,
    "!!int x": None,
    "!!binary MTI=": None,
    "1234567890123456789": None,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_curricula_and_files_of_worlds_take_the_same_texts_for_numbers(text: str) -> None:
    data, faults = read_yaml(text).data, list[str]()
    form = FileFormat(noun="test", kept="tests", head="# ", max_bytes=100)
    reader = FileReader(FileText(Path("t.yaml"), text), faults, form=form)
    number = reader.number(reader.root(), "x")
    if NUMBERS[text] is None:
        assert not isinstance(data, int | float) or isinstance(data, bool)
        assert math.isnan(number)
    else:
        assert data == number == NUMBERS[text]
    assert bool(faults) == (NUMBERS[text] is None)


@pytest.mark.parametrize("levels", [20, 40])
def test_deep_nesting_is_refused_where_it_goes_too_deep(levels: int) -> None:
    with pytest.raises(YamlError, match=f"nested deeper than {levels} levels") as refused:
        compose("a:\n  " + "[" * 100, max_levels=levels)
    assert refused.value.position == Position(2, levels + 2)


@pytest.mark.parametrize("text", ["", "a: 1", "a: 1\n", "a:\n  b: é"])
def test_positions_count_from_one_in_lines_and_characters(text: str) -> None:
    lines = text.split("\n")
    assert position_after(text) == Position(len(lines), len(lines[-1]) + 1)
    assert position_of(None) == Position(1, 1)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [1,\nb: {", "not valid YAML: while parsing a flow"),
        ('a: 1\nb: "\\UFFFFFFFF"', "an escape is too large"),
    ],
)
def test_a_broken_text_is_refused_at_its_place_also_of_the_package(text: str, what: str) -> None:
    for is_shipped in (False, True):
        with pytest.raises(YamlError, match=what) as refused:
            compose(text, is_shipped=is_shipped)
        assert refused.value.position.line == 2


def test_the_first_sections_hold_win_rates_over_steps_and_single_values_come_after_them() -> None:
    told = [value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)]
    section_of = {name: name.rpartition("/")[0] for name in [*told, f"{LEARNER_PREFIX}loss"]}
    sections = sorted({*section_of.values()})
    assert sections[:2] == ["eval", "learning"]
    without_wins = {names.EVAL_RETURN}  # in the place of win rates
    firsts = sorted(one for one in {*told} - without_wins if section_of[one] in sections[:2])
    assert firsts[:3] == ["eval/win_rate", "eval/win_rate_lower", "eval/win_rate_upper"]
    assert all("win_rate" in name for name in firsts)
    assert sections.index("test") > sections.index("lesson")


def test_a_measure_of_a_cell_has_one_form() -> None:
    for cell, name in ((("goto", 3), "/goto/3"), (("free", 0), "/free"), (("", 0), "")):
        assert names.of_cell(names.EVAL_WIN_RATE, Cell(*cell)) == f"eval/win_rate{name}"


HOSTILE = "a\x1b[2J\x9b31mb\rc\nd\u202ee\u2066f\u2028g\ud800h\x00"


def test_nothing_that_steers_a_terminal_is_left() -> None:
    shown = one_line(HOSTILE)
    assert shown.isprintable()
    assert shown == r"a\x1b[2J\x9b31mb\rc\nd\u202ee\u2066f\u2028g\ud800h\x00"
    assert terminal_lines("one\ntwo\x1b\r") == "one\ntwo\\x1b\\r"


@pytest.mark.parametrize("text", ["all levels", "Größe 0.5, (50 %) a/b it's x=1", "目標"])
def test_plain_names_stay_as_they_are(text: str) -> None:
    assert one_line(text) == markdown_text(text) == text


def test_nothing_that_markdown_or_html_would_act_on_is_left() -> None:
    text = "<img src=x onerror=alert(1)> [a](http://b) | `c` **d** __e__ www.f.g ~~h~~ #1 \\ &lt;"
    shown = markdown_text(text)
    assert not set('<>[]|`*_~\\":') & set(shown)
    assert "www." not in shown
    assert html_text('<b title="x">&\n') == "&lt;b title=&quot;x&quot;&gt;&amp;\\n"


def test_a_refusal_does_not_repeat_a_long_name() -> None:
    assert len(refusal_lines("x" * 100_000)) <= MAX_LINE
    assert refusal_lines(f"no such run {'x' * 100_000}: lists them").endswith(": lists them")

"""Broken map files: every fault in one line, with its place in the file; never a traceback."""

import random
from pathlib import Path

import numpy as np
import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import is_seen
from aimbot_lab.worlds.gorge.maps import FORM, SHIPPED_FILES, SIZE, kept_map, load_map

GORGE = SHIPPED_FILES[0].read_text(encoding="utf-8")
FIRST_ROW = GORGE.splitlines().index("rows: |") + 2  # line in the file, from 1
INDENT = 2


def row_in(text: str, z: int) -> int:
    """The index of the line of `text` that holds the cells of that z."""
    return text.splitlines().index("rows: |") + 1 + SIZE - 1 - z


def with_cell(text: str, cell: tuple[int, int], sign: str) -> str:
    lines = text.splitlines(keepends=True)
    number, at = row_in(text, cell[1]), INDENT + cell[0]
    lines[number] = lines[number][:at] + sign + lines[number][at + 1 :]
    return "".join(lines)


def faults_of(folder: Path, text: str | bytes) -> list[str]:
    """The faults of a file canyon.yaml that holds `text`, without its path."""
    path = folder / "canyon.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as caught:
        load_map(path)
    assert all(fault.startswith(f"{path}:") for fault in caught.value.faults)
    return [fault.removeprefix(f"{path}:") for fault in caught.value.faults]


def without_row(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[: row_in(text, 63)] + lines[row_in(text, 62) :])


def short_line(text: str) -> str:
    lines = text.splitlines()
    lines[row_in(text, 63 - 11)] = lines[row_in(text, 63 - 11)][:-1]
    return "\n".join(lines) + "\n"


SHAPES: dict[str, tuple[str, int, str]] = {  # text, line after the first row, rest of the fault
    "lines": (without_row(GORGE), -1, "7: rows: must hold 64 lines (got 63)"),
    "characters": (short_line(GORGE), 11, "66: rows: line 12 must have 64 characters (got 63)"),
    "sign": (
        with_cell(GORGE, (39, 63 - 11), "x"),
        11,
        "42: rows: line 12, character 40 is 'x'; allowed are # . S E and 0 to 9",
    ),
    "two starts": (with_cell(GORGE, (30, 9), "S"), 54, "33: rows: must hold one S (got 2)"),
    "no end": (with_cell(GORGE, (11, 55), "."), -1, "7: rows: must hold one E (got 0)"),
    "gap": (with_cell(GORGE, (9, 44), "."), 22, "57: rows: site 2 is missing (there is a 9)"),
    "twice": (with_cell(GORGE, (33, 23), "4"), 40, "36: rows: site 4 is there twice"),
    "points": (
        GORGE.replace("points: [50, 100, 100, 100, 50, 200,", "points: ["),
        -2,
        "9: points: must hold 10 numbers, one for each site (got 4)",
    ),
    "point": (
        GORGE.replace("points: [50,", "points: [1001,"),
        -2,
        "10: points.0: must be a whole number from 0 to 1000 (got '1001')",
    ),
    "fraction": (
        GORGE.replace("points: [50, 100,", "points: [50, 1e2,"),
        -2,
        "14: points.1: must be a whole number from 0 to 1000 (got '1e2')",
    ),
    "key": (
        GORGE.replace("points:", "point:"),
        -2,
        "1: unknown key 'point' (nearest valid key: points)",
    ),
    "name": (
        GORGE.replace("name: gorge", 'name: "a\\nb"'),
        -3,
        "7: name: must be text of 1 to 60 printable characters (got 'a\\nb')",
    ),
}


@pytest.mark.parametrize("broken", SHAPES, ids=str)
def test_a_fault_is_one_line_with_its_place(broken: str, tmp_path: Path) -> None:
    text, after, what = SHAPES[broken]
    assert f"{FIRST_ROW + after}:{what}" in faults_of(tmp_path, text)


def walled(cells: list[tuple[int, int]], text: str = GORGE) -> str:
    for cell in cells:
        text = with_cell(text, cell, "#")
    return text.replace("name: gorge", "name: canyon")


def around(x: int, z: int) -> list[tuple[int, int]]:
    return [(x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)]


def test_ways_that_are_missing_are_named_with_the_map(tmp_path: Path) -> None:
    line, what = FIRST_ROW + 63 - 55, "site 7 at (23, 55) can't be reached from the start"
    place = f"{line}:{INDENT + 24}: map canyon"
    assert faults_of(tmp_path, walled(around(23, 55))) == [f"{place}: {what} without the end"]
    place = f"{line}:{INDENT + 12}: map canyon"
    assert faults_of(tmp_path, walled(around(11, 55))) == [f"{place}: the end can't be reached"]
    # The site lies behind the end.
    walls = [cell for cell in around(23, 55) if cell != (22, 55)] + around(22, 55)
    text = walled([cell for cell in walls if cell not in ((22, 55), (23, 55))])
    text = with_cell(with_cell(text, (11, 55), "."), (22, 55), "E")
    text = with_cell(text, (21, 55), ".")
    (fault,) = faults_of(tmp_path, text)
    assert fault.endswith(f"{what} without the end")


def test_start_and_end_are_eight_steps_apart(tmp_path: Path) -> None:
    for steps in (5, 7):
        text = with_cell(with_cell(GORGE, (11, 55), "."), (29 + steps, 9), "E")
        (fault,) = faults_of(tmp_path, text)
        assert fault.endswith(f"map gorge: start and end must be 8 steps apart (got {steps})")
    text = with_cell(with_cell(GORGE, (11, 55), "."), (29 + 8, 9), "E")
    assert load_map(text).end == (37, 9)


def test_road_that_cannot_be_reached_is_allowed() -> None:
    walls = load_map("gorge").walls
    x, z = next(
        (x, z) for x, z in np.argwhere(walls[1:-1, 1:-1]) + 1 if all(walls[c] for c in around(x, z))
    )
    assert not load_map(with_cell(GORGE, (x, z), ".")).walls[x, z]


def test_every_fault_of_a_file_is_reported(tmp_path: Path) -> None:
    text = with_cell(GORGE, (3, 60), "x").replace("name: gorge", "nam: gorge")
    faults = faults_of(tmp_path, with_cell(text, (9, 30), "?"))
    assert len(faults) == 4  # the key, the name that is missing, two signs


MAPPING = "1:1: the file must be a mapping of name, points, rows"
TAG = b"name: !!python/object:os.system x\npoints: 1\nrows: 1"
FILES = {
    b"": f"{MAPPING} (got nothing)",
    b"[1, 2]": f"{MAPPING} (got a list)",
    b"s3cret": f"{MAPPING} (got text)",
    b"name: \xff": "1:7: not valid UTF-8: byte 0xff; save the file as UTF-8",
    b"#" * (FORM.max_bytes + 1): f"1:1: cannot be read: is larger than {FORM.max_bytes} bytes",
    b"[" * 999: "1:21: is nested deeper than 20 levels",
    TAG: "2:9: points: must be a list",
}


@pytest.mark.parametrize("content", FILES, ids=range(len(FILES)))
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    assert any(fault.startswith(FILES[content]) for fault in faults_of(tmp_path, content))


@pytest.mark.parametrize("entry", ["canyon.yaml", "", "a\0b", "x" * 5000, "gorge\\", "./gorge"])
def test_a_map_that_is_not_there_is_refused_in_one_line(entry: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_map(entry)
    (line,) = caught.value.faults
    assert line.startswith("no shipped map and no file ")
    assert line.endswith(" (shipped: gorge)")
    assert entry != "canyon.yaml" or line == f"no shipped map and no file {entry} (shipped: gorge)"
    assert is_seen(line)
    assert len(line) < 300


def test_folders_and_devices_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigurationError) as caught:
            load_map(path)
        assert list(caught.value.faults) == [f"{path}:1:1: cannot be read: is not a regular file"]


def test_a_text_that_a_run_keeps_is_the_map_it_was_made_from_or_refused(tmp_path: Path) -> None:
    text = kept_map("gorge")
    assert load_map(text) == load_map("gorge")
    assert kept_map(text) == text
    assert FORM.is_kept_name(FORM.kept_name(text))
    path = tmp_path / FORM.kept_name(text)
    path.write_text(GORGE, encoding="utf-8")
    altered = {with_cell(text, (30, 30), sign) for sign in ".#"} - {text}
    for given in (*altered, path):
        with pytest.raises(ConfigurationError, match="altered since a run kept it"):
            load_map(given)


SIGNS = "#.SE0123456789x:[]{}|>-!&*%@`\"'\t\0\r\n \u2028\ud800\u00e9"


def mutated(random_: random.Random, data: bytearray) -> bytes:
    """`data` with some characters, lines or blocks replaced, doubled or dropped."""
    for _ in range(random_.choice((1, 1, 2, 5, 30))):
        at = random_.randrange(len(data))
        until = at + random_.choice((1, 1, 1, 3, 65, 700))
        sign = random_.choice(SIGNS).encode("utf-8", "surrogatepass")
        new = random_.choice((b"", sign, sign, sign * 3, bytes(data[at:until]) * 2, b"\xff"))
        data[at:until] = new
        if not data:
            break
    return bytes(data)


def test_a_thousand_mutated_files_give_a_map_or_lines_and_never_a_traceback(tmp_path: Path) -> None:
    path, random_ = tmp_path / "mutated.yaml", random.Random(8)
    refused = 0
    for _ in range(1000):
        path.write_bytes(mutated(random_, bytearray(GORGE.encode())))
        try:
            load_map(path)
        except ConfigurationError as error:
            faults, refused = error.faults, refused + 1
            assert faults, "refused without a word"
            for fault in faults:
                place, line, column, what = fault.split(":", 3)
                assert (place, what.strip() != "") == (str(path), True)
                assert min(int(line), int(column)) >= 1
                assert is_seen(fault)
    assert 500 < refused < 1000

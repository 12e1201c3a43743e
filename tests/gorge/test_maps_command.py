"""`aimbot-lab maps` lists, checks, draws and makes maps; it never leaves a traceback."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from aimbot_lab.cli.commands.files import maps
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.gorge.generated_maps import generated_maps
from aimbot_lab.worlds.gorge.maps import load_map, map_text

GENERATED = generated_maps(5, seed=2, obstacle_share=0.5, sites=3)


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(maps, [str(argument) for argument in arguments])


def refusal(*arguments: str | Path) -> list[str]:
    """The faults that end the command with exit code 2."""
    error = invoke(*arguments).exception
    assert isinstance(error, ConfigurationError)
    assert error.exit_code == 2
    return list(error.faults)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five maps, and a file that is none."""
    for number, grid in enumerate(GENERATED):
        (tmp_path / f"{number}.yaml").write_text(map_text(grid), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a map", encoding="utf-8")
    return tmp_path


def test_the_shipped_map_is_listed_where_no_files_are_named() -> None:
    head, row = invoke("list").output.splitlines()
    assert head.split()[:3] == ["name", "start", "end"]
    assert row.split()[:5] == ["gorge", "29,", "9", "11,", "55"]
    assert "132 steps" in row
    assert invoke("check").output == "1 map is valid\n"
    assert invoke("check", "gorge").output == "1 map is valid\n"


def test_a_list_as_json_says_what_each_map_holds(folder: Path) -> None:
    documents = json.loads(invoke("list", "--json", folder).output)
    assert [one["name"] for one in documents] == [grid.name for grid in GENERATED]
    for one, grid in zip(documents, GENERATED, strict=True):
        places = {"start": list(grid.start), "end": list(grid.end), "sites": grid.sites.tolist()}
        rest = {"points": grid.points.tolist(), "obstacle_share": 0.5, "hash": grid.content_hash}
        assert one.items() >= {**places, **rest}.items()


def test_every_fault_of_every_file_is_listed(folder: Path) -> None:
    for number in (1, 3):
        path = folder / f"{number}.yaml"
        path.write_text(path.read_text(encoding="utf-8").replace("S", "."), encoding="utf-8")
    for command in ("check", "list", "draw"):
        lines = refusal(command, folder)
        assert [line.split(":")[0] for line in lines] == [f"{folder}/1.yaml", f"{folder}/3.yaml"]
        assert all(line.endswith("rows: must hold one S (got 0)") for line in lines)


def test_a_sheet_shows_each_map_by_its_cells(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    assert invoke("draw", folder, "-o", sheet).output == f"written to {sheet}\n"
    with Image.open(sheet) as picture:
        assert picture.size == (8 + 4 * 520, 8 + 2 * 540)
        walls = GENERATED[1].walls
        corner = [(8 + 520 + 8 * x, 8 + 8 * (63 - z)) for x in (0, 63) for z in (0, 63)]
        dark = [sum(picture.getpixel(at)) < 400 for at in corner]
    assert dark == [bool(walls[x, z]) for x in (0, 63) for z in (0, 63)]


def test_a_made_map_is_read_back_as_the_generators_or_leaves_no_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "my.yaml"
    line = "no solvable map with obstacle_share 0.95 in 1,000 tries"
    assert refusal("make", "--obstacle-share", "0.95", "-o", path) == [line]
    assert not path.exists()
    words = ("make", "--seed", "7", "--obstacle-share", "0.5", "--sites", "4")
    assert invoke(*words, "-o", path).output == f"written to {path}\n"
    assert (load_map(path),) == generated_maps(1, seed=7, obstacle_share=0.5, sites=4)
    assert invoke(*words).output == path.read_text(encoding="utf-8")

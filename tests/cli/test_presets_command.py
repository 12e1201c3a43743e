"""`aimbot-lab presets` lists, checks and draws; it never leaves a traceback."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from aimbot_lab.cli.commands.files import presets
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import SHIPPED_FILES, load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import files_of_key

GOOD = """\
goto:
  2:
    - name: mine
      fire_base: {center: [5, 5], diameter: 3}
      obstacles: [[1, 1, 2, 2]]
"""
BAD = """\
goto:
  2:
    - name: too wide
      fire_base: {center: [5, 5], diameter: 11}
      obstacles: [[1, 1, 2, 20]]
"""


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(presets, [str(argument) for argument in arguments])


def refusal(*arguments: str | Path) -> list[str]:
    """The faults that end the command with exit code 2."""
    error = invoke(*arguments).exception
    assert isinstance(error, ConfigurationError)
    assert error.exit_code == 2
    return list(error.faults)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two good files, b before a in time, and one that is no preset file."""
    (tmp_path / "b.yaml").write_text(GOOD.replace("mine", "yours"), encoding="utf-8")
    (tmp_path / "a.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a preset", encoding="utf-8")
    return tmp_path


def test_all_shipped_presets_are_listed_and_valid() -> None:
    lines = invoke("list").output.splitlines()
    assert lines[0].split() == ["name", "target", "difficulty", "FireBase", "obstacles", "enemies"]
    count = len(load_presets())
    assert len(lines) == 1 + count
    for files in ((), SHIPPED_FILES):
        assert invoke("check", *files).output == f"{count} presets are valid\n"


def test_the_json_list_holds_what_a_preset_is(folder: Path) -> None:
    (mine, yours) = json.loads(invoke("list", folder, "--json").output)
    assert mine == {
        "name": "mine",
        "target": "goto",
        "difficulty": 2,
        "fire_base_diameter": 3.0,
        "obstacles": 1,
        "enemies": 0,
    }
    assert yours["name"] == "yours"


def test_a_folder_stands_for_its_yaml_files_by_name_and_no_file_counts_twice(folder: Path) -> None:
    (folder / "aa.yml").write_text(GOOD.replace("mine", "third"), encoding="utf-8")
    names = [entry["name"] for entry in json.loads(invoke("list", folder, "--json").output)]
    assert names == ["mine", "third", "yours"]
    assert invoke("check", folder, folder / "b.yaml").output == "3 presets are valid\n"
    assert invoke("check", folder / "a.yaml").output == "1 preset is valid\n"


def test_check_tells_every_fault_of_every_file(folder: Path) -> None:
    (folder / "c.yaml").write_text(BAD, encoding="utf-8")
    (folder / "d.yaml").write_text("goto: [", encoding="utf-8")
    faults = refusal("check", folder, folder / "missing.yaml")
    assert len(faults) == 5
    assert all("\n" not in fault for fault in faults)
    assert faults[0].startswith(f"{folder}/c.yaml:4:18: preset too wide: the FireBase's diameter")
    assert f"{folder}/missing.yaml:1:1: cannot be read: No such file or directory" in faults


def test_a_folder_without_presets_is_refused(tmp_path: Path) -> None:
    fault = f"{tmp_path}: the folder holds no *.yaml or *.yml file"
    for command in ("list", "check", "draw"):
        assert refusal(command, tmp_path) == [fault]


def test_check_refuses_the_name_of_a_shipped_preset_as_the_arena_does(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("mine", "open field"), encoding="utf-8")
    (fault,) = refusal("check", path)
    assert fault.startswith(f"{path}:3:7: preset open field: another goto preset has this name")
    with pytest.raises(ConfigurationError) as caught:
        Arena(ArenaSettings(num_envs=1, presets=(str(path),)))
    assert list(caught.value.faults) == [fault]


def test_the_sheet_shows_every_preset(folder: Path) -> None:
    sheet = folder / "sheet.png"
    result = invoke("draw", "-o", sheet)
    assert result.exit_code == 0
    assert result.output == f"written to {sheet}\n"
    with Image.open(sheet) as picture:
        assert (picture.format, picture.mode) == ("PNG", "RGB")
        whole = picture.size
    invoke("draw", folder / "a.yaml", "-o", sheet)  # replaces it
    with Image.open(sheet) as picture:
        assert picture.size < whole


def test_a_sheet_that_cannot_be_written_is_one_line(folder: Path) -> None:
    missing = folder / "no" / "sheet.png"
    (fault,) = refusal("draw", "-o", missing)
    assert fault == f"--output {missing}: cannot be written: No such file or directory"
    (fault,) = refusal("draw", "-o", folder)
    assert fault.endswith("Is a directory")


def test_files_that_no_world_has_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"^no world that is installed has maps$"):
        files_of_key("maps")

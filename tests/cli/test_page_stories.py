"""The examples of the pages, run as they stand with curricula small enough for a test."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import CURRICULUM, invoke, invoke_plainly

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs

PACKAGE = Path(__file__).parents[2] / "aimbot_lab"
EVALUATION = PACKAGE / "evaluation" / "README.md"
TRACKING = PACKAGE / "tracking" / "README.md"
TRAINING = PACKAGE / "training" / "README.md"


def story(page: Path, beginning: str, language: str = "sh") -> Iterator[str]:
    """The lines of the first block of `language` after `beginning` on the page."""
    _, _, rest = page.read_text(encoding="utf-8").partition(beginning)
    block = re.search(rf"^```{language}\n(.*?)^```", rest, re.DOTALL | re.MULTILINE)
    assert block, beginning
    yield from block.group(1).splitlines()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder beside curricula of the pages' names, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "curricula").mkdir()
    for name in ("goto", "attack", "short"):
        text = CURRICULUM.replace("name: tiny", f"name: {name}").replace("tests", name)
        (tmp_path / "curricula" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "data"


def follow(data: Path, page: Path, beginning: str) -> None:
    for line in story(page, beginning):
        command, *words = shlex.split(line, comments=True)
        assert command == "aimbot-lab"
        if "--seeds" in words:  # processes of their own, which tests/cli/test_seeds.py starts
            place = words.index("--seeds")
            del words[place : place + 2]
        invoke(data, *words, wanted=(0, 1) if words[0] == "run" else 0)


def test_a_training_starts_from_another_runs_agent(data: Path) -> None:
    follow(data, TRAINING, "## Start from another run's agent")
    later, first = list_runs(DataFolder(data))
    assert (first.name, later.name) == ("walker", "walker-goes-on")
    assert later.tags["lab.init_from"] == first.run_id


def test_several_seeds_are_one_result(data: Path) -> None:
    follow(data, EVALUATION, "## Several seeds")
    assert len(list_runs(DataFolder(data))) == 2
    assert "interquartile" in Path("usual-or-slower.html").read_text(encoding="utf-8")
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")


def test_runs_are_found_by_their_tags_and_deleted(data: Path) -> None:
    follow(data, TRACKING, "## Find and delete runs")
    assert list_runs(DataFolder(data)) == []


def test_the_example_from_python_runs(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIMBOT_LAB_DATA_DIR", str(data))
    names: dict[str, Any] = {}
    exec("\n".join(story(PACKAGE / "README.md", "## From Python", "python")), names)
    assert capsys.readouterr().out.startswith("FAILED 2048 ")
    assert names["actions"].shape == (1, 4)
    assert len(names["both"].configurations[0].runs) == 2


def test_maps_are_made_checked_and_drawn(data: Path) -> None:
    for line in story(PACKAGE / "worlds" / "gorge" / "data" / "README.md", "# Maps of your own"):
        invoke_plainly(*shlex.split(line, comments=True)[1:])
    assert Path("my.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("duel", "## In PettingZoo"),
        ("gorge", "## In Gymnasium"),
        ("gorge/data", "## The best walk"),
    ],
)
def test_code_of_worlds_runs(page: str, heading: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [*story(PACKAGE / "worlds" / page / "README.md", heading, "python")]
    exec("\n".join(lines), {})
    assert capsys.readouterr().out.strip() in lines[-1]

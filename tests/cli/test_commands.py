"""Every command has help with an example and a line in the README; `check` and `runs` answer."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(cli.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert f"aimbot-lab {name}" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_line_in_the_readme(name: str) -> None:
    assert f"`aimbot-lab {name}" in README


def test_help_names_every_command() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"\n  {name} " in output for name in COMMANDS)


@pytest.mark.parametrize("group", [[], ["presets"], ["bench"]])
def test_every_command_is_listed_in_one_whole_line(group: list[str]) -> None:
    output = CliRunner().invoke(cli, [*group, "--help"], terminal_width=60).output
    listed = output.split("Commands:\n")[1].splitlines()
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


def test_shipped_curricula_are_fit_to_run() -> None:
    files = sorted(map(str, (ROOT / "curricula").glob("*.yaml")))
    assert files
    result = CliRunner().invoke(cli, ["check", *files], standalone_mode=False)
    assert result.return_value == 0, result.output


def test_check_lists_the_faults_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nlessons: []\n")
    (tmp_path / "b.yaml").write_text("name: b\nlesson: []\n")
    files = [str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]
    result = CliRunner().invoke(cli, ["check", *files], standalone_mode=False)
    assert result.return_value == 2
    assert f"{files[0]}:2:" in result.output
    assert f"{files[1]}:2:1: lesson" in result.output


def test_runs_of_an_empty_folder_is_an_empty_list_and_creates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    result = CliRunner().invoke(cli, ["runs", "--json", "--data-dir", str(folder)])
    assert result.exit_code == 0
    assert result.output == "[]\n"
    assert not folder.exists()

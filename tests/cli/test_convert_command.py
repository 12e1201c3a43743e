"""`aimbot-lab convert` and `schema`: what they write, and what was lost on the way."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError

TRAINER = "behaviors: {Walker: {max_steps: 1000, keep_checkpoints: 7}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.yaml").write_text(TRAINER, encoding="utf-8")
    return tmp_path


def test_what_it_writes_is_fit_to_run(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["convert", "t.yaml", "-o", "c.yaml", "--target", "free"])
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "t.yaml: not needed here, ignored: keep_checkpoints",
        "written to c.yaml",
    ]
    checked = CliRunner().invoke(cli, ["check", "c.yaml"], standalone_mode=False)
    assert checked.return_value == 0


def test_it_reads_standard_input_and_writes_standard_output() -> None:
    result = CliRunner().invoke(cli, ["convert", "-"], input=TRAINER)
    assert result.stdout.startswith("# Converted from the ML-Agents trainer file <stdin>.\n\nname")
    assert "names no targets: goto is used" in result.stderr


def test_nothing_is_written_where_it_cannot_be_converted(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["convert", "-", "-o", "c.yaml"], input="max_steps: [")
    assert getattr(result.exception, "exit_code", None) == 2
    assert not (folder / "c.yaml").exists()


def test_its_targets_are_those_of_the_world_the_default_one_first() -> None:
    shown = CliRunner().invoke(cli, ["convert", "--help"]).output
    assert "--target [goto|attack|free]" in shown
    refused = CliRunner().invoke(cli, ["convert", "t.yaml", "--target", "stay"])
    assert refused.exit_code == 2
    assert "'stay' is not one of 'goto', 'attack', 'free'" in refused.stderr


ROOT = Path(__file__).parent.parent.parent


def test_it_prints_the_schema_that_the_curricula_name_and_every_kind_of_file_has_its_own(
    tmp_path: Path,
) -> None:
    shipped = (ROOT / "curricula" / "curriculum.schema.json").read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["schema"]).stdout == shipped
    assert json.loads(shipped)["title"] == "aimbot-lab: a curriculum"
    path = tmp_path / "sweep.json"
    assert CliRunner().invoke(cli, ["schema", "sweep", "-o", str(path)]).stdout == ""
    assert json.loads(path.read_text(encoding="utf-8"))["title"] == "aimbot-lab: a sweep"


def test_a_file_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "schema.json"
    result = CliRunner().invoke(cli, ["schema", "-o", str(path)])
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == f"--output {path}: can't be written: No such file or directory"

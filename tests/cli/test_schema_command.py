"""`aimbot-lab schema` prints or writes what the shipped curricula name."""

import json
from pathlib import Path

from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError

ROOT = Path(__file__).parent.parent.parent


def test_it_prints_the_schema_that_the_curricula_name() -> None:
    shipped = (ROOT / "curricula" / "curriculum.schema.json").read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["schema"]).stdout == shipped


def test_every_kind_of_file_has_a_schema_with_a_heading(tmp_path: Path) -> None:
    for kind in ("curriculum", "sweep"):
        path = tmp_path / f"{kind}.json"
        result = CliRunner().invoke(cli, ["schema", kind, "-o", str(path)])
        assert result.stdout == ""
        assert json.loads(path.read_text(encoding="utf-8"))["title"] == f"aimbot-lab: a {kind}"


def test_a_file_that_cannot_be_written_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "schema.json"
    result = CliRunner().invoke(cli, ["schema", "-o", str(path)])
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == f"--output {path}: can't be written: No such file or directory"

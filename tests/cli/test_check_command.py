"""`aimbot-lab check` on files, folders and standard input, with overrides and as JSON."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError

GOOD = "name: g\nlessons:\n  - {name: a, targets: {goto: 1}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.yaml", "a.yml", "none.txt"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    return tmp_path


def check(*arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], input=said, standalone_mode=False)


def test_a_folder_stands_for_its_yaml_files_each_once() -> None:
    assert check(".", "b.yaml").stdout == "2 files are fit to run\n"


def test_a_folder_without_files_is_a_fault(folder: Path) -> None:
    (folder / "empty").mkdir()
    result = check("empty")
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == "empty: the folder holds no *.yaml or *.yml file"


def test_standard_input_is_checked_under_its_own_name() -> None:
    assert check("-", said=GOOD).stdout == "1 file is fit to run\n"
    result = check("-", said=GOOD.replace("goto", "gotto"))
    assert result.return_value == 2
    assert result.stderr.startswith("<stdin>:3:25: lessons.0.targets.gotto: unknown target")


def test_overrides_are_checked_with_every_file() -> None:
    result = check("a.yml", "b.yaml", "--set", "seed=x")
    assert result.return_value == 2
    assert result.stderr.count("--set seed=x: seed: must be a whole number") == 2


def test_the_document_has_each_fault_by_its_parts(folder: Path) -> None:
    (folder / "b.yaml").write_text(GOOD.replace("name: g", "nam: g"), encoding="utf-8")
    result = check("a.yml", "b.yaml", "no.yaml", "--json")
    assert (result.return_value, result.stderr) == (2, "")
    first, second, third = json.loads(result.stdout)["files"]
    assert first == {"file": "a.yml", "faults": []}
    assert [(one["line"], one["column"]) for one in second["faults"]] == [(1, 1), (1, 1)]
    assert second["faults"][0]["message"] == "nam: unknown key (nearest valid key: name)"
    assert third["faults"] == [
        {"line": None, "column": None, "message": "can't be read: No such file or directory"}
    ]


def test_a_document_without_faults_is_exit_code_0() -> None:
    result = check("b.yaml", "--json")
    assert result.return_value == 0
    assert json.loads(result.stdout) == {"schema": 1, "files": [{"file": "b.yaml", "faults": []}]}


def test_a_sweep_is_checked_as_one(folder: Path) -> None:
    sweep = "name: s\nbase: b.yaml\nsearch:\n  env.rewards.facing: {type: float, low: 0, high: 1}\n"
    (folder / "s.yaml").write_text(sweep, encoding="utf-8")
    assert check("s.yaml", "b.yaml").stdout == "2 files are fit to run\n"
    (folder / "s.yaml").write_text(sweep.replace("facing", "facin"), encoding="utf-8")
    result = check("s.yaml")
    assert result.return_value == 2
    assert result.stderr.startswith("s.yaml:4:3: ")
    assert "env.rewards.facin" in result.stderr

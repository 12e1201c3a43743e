"""`aimbot-lab init` writes a project that is fit to run, or nothing."""

import os
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.plan import plan_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.shipped.named_files import FILES
from aimbot_lab.sweep.document import load_sweep
from aimbot_lab.tracking.data_folder import locate_data_folder

pytestmark = pytest.mark.usefixtures("here")


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, words, standalone_mode=False)


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_it_wrote_is_fit_to_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = call("init", "deep/my agents")
    assert told.exception is None
    assert written(here / "deep" / "my agents") == sorted(FILES)
    assert told.stdout.splitlines() == [f"deep/my agents/{name}" for name in FILES]
    assert "cd 'deep/my agents'\n" in told.stderr
    monkeypatch.chdir("deep/my agents")
    assert call("check").stdout == "2 files are valid\n"
    assert plan_curriculum(load_curriculum("walk")).warnings == ()
    assert load_sweep("walk_rewards").base.name == "walk"


def test_its_data_stay_in_it_and_git_leaves_them_out(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / ".git").mkdir()
    call("init", "x")
    monkeypatch.chdir("x")
    assert locate_data_folder().root == here / "x" / ".aimbot-lab"
    assert ".aimbot-lab/" in Path(".gitignore").read_text(encoding="utf-8").splitlines()


def test_the_commands_of_its_readme_exist_with_their_options(here: Path) -> None:
    call("init", "x")
    text = (here / "x" / "README.md").read_text(encoding="utf-8")
    lines = [
        line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.split("\n")
    ]
    called = [shlex.split(line, comments=True) for line in lines if line]
    assert len(called) >= 10
    for words in called:
        assert words[0] == "aimbot-lab"
        command: click.Command = cli.commands[words[1]]
        if isinstance(command, click.Group):
            command = command.commands[words[2] if words[2] in command.commands else "start"]
        known = {name for param in command.params for name in param.opts}
        assert {word for word in words if word.startswith("-")} <= known, words


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_has_one_of_the_files_is_refused_and_left_as_it_was(
    here: Path, name: str
) -> None:
    (here / name).parent.mkdir(exist_ok=True)
    (here / name).write_text("mine", encoding="utf-8")
    refused = call("init", ".")
    assert isinstance(refused.exception, ConfigurationError)
    assert str(refused.exception) == f".: has {name} already; name another folder"
    assert refused.exception.exit_code == 2
    assert written(here) == [name]


def test_what_the_disk_refuses_is_told_in_a_line_and_nothing_is_left(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_text("", encoding="utf-8")
    assert str(call("init", "file").exception) == "file: can't be written: File exists"
    real = Path.open

    def refuse(path: Path, *arguments: str, **named: Any) -> object:
        if path.name == "walk_rewards.yaml" and arguments == ("xb",):
            raise OSError(28, os.strerror(28))
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", refuse)
    refused = call("init", "a/b").exception
    assert str(refused) == "a/b: can't be written: No space left on device"
    assert written(here) == ["file"]
    assert not (here / "a").exists()

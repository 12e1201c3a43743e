"""Runs small enough for a test, by the command line in this process."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.cli.view import PlainView
from aimbot_lab.foundation.errors import LabError

COMMAND = [sys.executable, "-m", "aimbot_lab"]
CURRICULUM = """
name: tiny
seed: 7
env: {num_envs: 16, goto_win_radius: 12.0, time_limit: 3.0}
lessons:
  - name: first
    targets: {goto: 1}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: {threshold: 0.02, min_lesson_length: 10}
  - name: second
    targets: {goto: 1}
    difficulty: {goto: [1, 1, 0, 0, 0]}
train:
  algo: ppo
  total_steps: 2_048
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {layers: [8], scaling: running}
  torch_threads: 1
tracking: {experiment: tests}
"""


def write(folder: Path, name: str = "tiny.yaml", text: str = CURRICULUM) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def environment() -> dict[str, str]:
    """Of a process that knows nothing of the tests."""
    kept = {key: value for key, value in os.environ.items() if "AIMBOT_LAB" not in key}
    kept.pop("MLFLOW_TRACKING_URI", None)
    return {**kept, "OMP_NUM_THREADS": "1"}


def begin_in(
    folder: Path, *words: str, command: Sequence[str] = COMMAND
) -> "subprocess.Popen[str]":
    """`aimbot-lab` with `words` in a process of its own, called in `folder`."""
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *words], cwd=folder, env=environment(), text=True, **piped)


def invoke(data: Path, *words: Any, wanted: int | tuple[int, ...] = 0) -> Any:
    """What the command came to, as `main` would tell it: exit_code, stdout, stderr."""
    return invoke_plainly(*words, "--data-dir", data, wanted=wanted)


def invoke_in(folder: Path, *words: Any, wanted: int | tuple[int, ...] = 0) -> Any:
    """The same of a command that is called in `folder`, and finds the data folder there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("AIMBOT_LAB_DATA_DIR", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        # Else past the stream that is read here.
        patch.setattr(PlainView, "notice", PlainView.stage)
        return invoke_plainly(*words, wanted=wanted)


def invoke_plainly(*words: Any, wanted: int | tuple[int, ...] = 0, **options: Any) -> Any:
    """The same of a command that has no data folder."""
    result = CliRunner().invoke(cli, [*map(str, words)], standalone_mode=False, **options)
    code = result.return_value if isinstance(result.return_value, int) else 0
    said = result.stderr
    if isinstance(result.exception, click.ClickException):
        code = result.exception.exit_code
        said += result.exception.format_message()
    elif isinstance(result.exception, LabError):
        code = result.exception.exit_code
        said += str(result.exception)
    elif isinstance(result.exception, click.Abort):
        code = 130
    elif result.exception is not None:
        raise result.exception
    allowed = (wanted,) if isinstance(wanted, int) else wanted
    assert code in allowed, f"exit code {code}: {said}"
    return Told(code, result.stdout, said)


class Told:
    def __init__(self, code: int, output: str, said: str) -> None:
        self.code, self.output, self.said = code, output, said

    @property
    def document(self) -> Any:
        return json.loads(self.output)


def train(data: Path, file: Path, *words: Any) -> Any:
    """The JSON document of a run that was trained to its end."""
    return invoke(data, "run", file, *words, "--json", wanted=(0, 1)).document

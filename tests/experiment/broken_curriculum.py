"""A good curriculum to break, and what is said about a broken one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError

GOOD = """\
name: good
seed: 1
env:
  num_envs: 64
  rewards: {win: 1.0}
lessons:
  - name: first
    targets: {goto: 1.0}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: {threshold: 0.9}
  - name: last
    targets: {goto: 1.0}
train:
  batch_size: 1024
"""
REFERENCE = "a reference is ${KEY} with a KEY such as train.n_steps"
KINDS = "'uniform', 'gaussian', 'multirangeuniform' or 'constant'"
FITS = "so that a block fits beside the agent"


def with_parameters(parameters: str, text: str = GOOD) -> str:
    """`text` whose first lesson, in a line before its difficulties, has these parameters."""
    return text.replace("difficulty:", f"parameters: {parameters}\n    difficulty:", 1)


def faults(content: str | bytes, *overrides: str) -> list[str]:
    """The lines in which c.yaml, written to the working folder, is refused."""
    Path("c.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    return faults_of("c.yaml", *overrides)


def faults_of(path: str | Path, *overrides: str, allowed_env: Sequence[str] = ()) -> list[str]:
    """The lines in which the file at `path` is refused."""
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path, overrides, allowed_env=allowed_env)
    assert caught.value.exit_code == 2
    return list(caught.value.faults)

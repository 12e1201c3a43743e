"""Preset paths from which nothing can be read are refused where the curriculum names them."""

import os
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError

CURRICULUM = """\
name: yard
env: {presets: [PATH]}
lessons:
  - name: only
    targets: {goto: 1}
    completion_criteria: {threshold: 0.99}
train: {total_steps: 4096}
"""


def refusal(folder: Path, entry: str) -> str:
    path = folder / "yard.yaml"
    path.write_text(CURRICULUM.replace("PATH", entry), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path)
    (line,) = caught.value.faults
    return line.replace(str(folder), "HERE")


def test_what_holds_no_presets_is_refused_by_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "nope").mkdir()
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop", target_is_directory=True)
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    os.mkfifo(tmp_path / "pipe")
    at = "HERE/yard.yaml:2:17: env.presets.0: "
    no_file = "the folder holds no *.yaml or *.yml file"
    assert refusal(tmp_path, "nope/") == at + no_file
    assert refusal(tmp_path, "loop") == at + no_file
    assert refusal(tmp_path, "/dev/zero") == at + "is not a regular file"
    assert refusal(tmp_path, "/proc/self/status") == at + "is not a regular file"  # kmsg would wait
    assert refusal(tmp_path, "pipe") == at + "is not a regular file"
    assert refusal(tmp_path, "itself").startswith(at + "there is no file or folder")


def test_a_name_too_long_for_any_disk_is_refused_by_line_and_column(tmp_path: Path) -> None:
    line = refusal(tmp_path, "k" * 10_000)
    assert line.startswith("HERE/yard.yaml:2:17: env.presets.0: cannot be read: File name too long")
    assert len(line) < 500


def test_a_file_without_presets_is_refused_by_its_own_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "huge.yaml").write_bytes(b" " * (2**20 + 1))
    (tmp_path / "passwd").write_text("root:x:0:0\n", encoding="utf-8")
    (tmp_path / "deep.yaml").write_text("goto: " + "[" * 3000 + "]" * 3000, encoding="utf-8")
    assert refusal(tmp_path, "huge.yaml").startswith("HERE/huge.yaml:1:1: cannot be read")
    assert refusal(tmp_path, "passwd").startswith("HERE/passwd:1:1: the file: must be a mapping")
    assert "root" not in refusal(tmp_path, "passwd")
    assert "nested too deeply" in refusal(tmp_path, "deep.yaml")

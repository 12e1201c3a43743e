"""What tests of runs need: a data folder, and a small curriculum."""

from pathlib import Path

import pytest
from begun_runs import CURRICULUM

from aimbot_lab.tracking.data_folder import DataFolder


@pytest.fixture
def data_folder(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(CURRICULUM, encoding="utf-8")
    return path

"""An embedded store made once per session, and a copy of it for each test."""

import shutil
from pathlib import Path

import pytest

from aimbot_lab.tracking.address import embedded_address
from aimbot_lab.tracking.data_folder import DataFolder


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "AIMBOT_LAB_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def template_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh embedded store, to be copied."""
    from aimbot_lab.tracking.mlflow_store import connect

    folder = DataFolder(tmp_path_factory.mktemp("template"))
    connect(folder, embedded_address(folder))
    return folder.database


@pytest.fixture
def data_folder(tmp_path: Path, template_database: Path) -> DataFolder:
    """A data folder with an embedded store of its own."""
    folder = DataFolder(tmp_path / ".aimbot-lab")
    folder.create()
    shutil.copy(template_database, folder.database)
    return folder

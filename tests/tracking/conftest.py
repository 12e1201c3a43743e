"""An embedded store made once per session, and a copy of it for each test."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from owned_runs import leave_folder

from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.journal import EntrySink, FileEntry, Journal, MetricsEntry, TagsEntry
from aimbot_lab.tracking.journal_tracker import JournalTracker, RunAddress
from aimbot_lab.tracking.run_folder import OWNER_TAG, RunFolder, this_process
from aimbot_lab.tracking.tracker import Notify, silent

if TYPE_CHECKING:
    from aimbot_lab.tracking.mlflow_store import MlflowStore


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


@pytest.fixture
def begin(tmp_path: Path) -> Callable[..., JournalTracker]:
    """Start a tracker over a given store, its run folder `tmp_path`/run."""
    folder = tmp_path / "run"
    folder.mkdir()

    def start(store: EntrySink, notify: Notify = silent, *, events: bool = False) -> JournalTracker:
        return JournalTracker(
            RunAddress("run", "1", "fake:"),
            RunFolder(folder, this_process("token", None)),
            sink=store,
            notify=notify,
            first_pause=0.001,
            events=events,
        )

    return start


@pytest.fixture
def store(data_folder: DataFolder) -> "MlflowStore":
    """The embedded store of `data_folder`."""
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, embedded_address(data_folder))


@pytest.fixture
def dead_run(data_folder: DataFolder, store: "MlflowStore") -> RunFolder:
    """A run whose owner died with three entries in its journal."""
    owner = this_process("deadbeef", None)
    folder = leave_folder(data_folder, owner)
    run_id = store.create_run(store.experiment_id("x"), "dead", tags={OWNER_TAG: owner.label})
    folder = folder.named(run_id)
    journal = Journal(folder.path)
    journal.append(MetricsEntry(10, 1000, {"a": 1.0, "nan": float("nan")}))
    journal.append(TagsEntry({"lab.lesson": "3"}))
    journal.append(FileEntry(journal.files.keep_text("x", "a.txt"), "notes"))
    journal.close()
    return folder

"""What only shows between processes: crashes, cold starts, and what is imported when."""

import os
import subprocess
import sys

import pytest

from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.mlflow_store import connect

OPEN = """
import sys
from pathlib import Path
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
folder = DataFolder(Path(sys.argv[1]))
tracker = open_run(folder, TrackingSettings(), RunDescription("child"))
"""
TELEMETRY_IS_OFF = """
from mlflow.telemetry.client import get_telemetry_client
from mlflow.telemetry.utils import is_telemetry_disabled
assert is_telemetry_disabled()
assert get_telemetry_client() is None
"""
LOG_FOR_EVER = """
print(tracker.run_id, flush=True)
for step in range(1_000_000):
    tracker.log_metrics(step, {"a": step, "b": -step})
    print(step, flush=True)
"""
LOG_AND_FINISH = """
tracker.log_metrics(1, {"a": 1.0})
assert tracker.finish("FINISHED", wait_seconds=300).complete
"""


def child(script, folder, environment=os.environ):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_acknowledged_is_lost_when_the_process_is_killed_and_telemetry_is_off(data_folder):
    # MLflow is silent by itself where it believes to be tested, which would prove nothing.
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name in kept}
    script = OPEN + TELEMETRY_IS_OFF + LOG_FOR_EVER
    process = child(script, data_folder.root, environment=environment)
    run_id = process.stdout.readline().strip()
    for _ in range(60):
        process.stdout.readline()
    process.kill()
    rest, _ = process.communicate()
    acknowledged = 60 + len(rest.splitlines(keepends=True)) - (not rest.endswith("\n"))
    assert [run.status for run in list_runs(data_folder)] == ["RUNNING"]

    assert close_orphan_runs(data_folder) == [run_id]

    client = connect(data_folder, embedded_address(data_folder)).client
    assert client.get_run(run_id).info.status == "KILLED"
    for key, sign in (("a", 1), ("b", -1)):
        rows = [(row.step, row.value) for row in client.get_metric_history(run_id, key)]
        assert len(rows) >= acknowledged
        assert rows == [(step, sign * step) for step in range(len(rows))]


@pytest.mark.campaign
def test_several_processes_may_come_first_at_the_same_time(tmp_path):
    folder = DataFolder(tmp_path / "fresh")
    processes = [child(OPEN + LOG_AND_FINISH, folder.root) for _ in range(2)]
    for process in processes:
        output = "".join(process.communicate())
        assert (process.returncode, output) == (0, "")
    runs = list_runs(folder)
    assert [run.status for run in runs] == ["FINISHED"] * 2
    assert {run.experiment for run in runs} == {"aimbot-lab"}
    names = ["mlflow.db", "runs", "store.lock"]
    assert sorted(path.name for path in folder.root.iterdir()) == names


NEEDS_NONE = """
import sys
from pathlib import Path
import aimbot_lab.tracking.ui
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal_tracker import check_destination
from aimbot_lab.tracking.settings import TrackingSettings
folder = DataFolder(Path(sys.argv[1]))
check_destination(folder, TrackingSettings())
assert close_orphan_runs(folder) == list_runs(folder) == []
assert not {"mlflow", "sqlalchemy", "torch", "numpy"} & set(sys.modules)
"""


def test_mlflow_is_not_imported_where_nothing_needs_it(tmp_path):
    process = child(NEEDS_NONE, tmp_path / "none")
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    assert not (tmp_path / "none").exists()

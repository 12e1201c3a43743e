"""Workers of a sweep that Ray places: the same result, whatever dies; and what is refused."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from optuna.trial import TrialState
from postgres_server import NoServerError, postgres_server
from sweep_files import PLANTED, changed, write_sweep

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.record import find_record
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from tests.cli.tiny_runs import begin_in

NOWHERE = "postgresql://lab@127.0.0.1:9/sweeps"
WORKERS, KILLED = 16, 5
SHARED = changed(
    PLANTED,
    ("trials: 8", "trials: 40"),
    ("workers: 3", f"workers: {WORKERS}"),
    ("parallel: 3", f"parallel: {WORKERS}"),
    ("lease: 600", "lease: 60"),
    ("  episodes: 500", "  episodes: 500\n  seconds: 0.5"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with postgres_server() as address:
            yield address
    except NoServerError as error:
        pytest.fail(f"no PostgreSQL server could be started: {error}")


def tasks_of(coordinator: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes of Ray that have a worker."""
    found = []
    for one in psutil.Process(coordinator.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # zombies are among these
            if "ray::work_on" in "".join(one.cmdline()[:1]):
                found.append(one)
    return found


def begun(folder: Path, *options: str) -> subprocess.Popen[str]:
    return begin_in(folder, "sweep", "sweep.yaml", "--json", *options)


def values(report: dict[str, list[dict[str, object]]]) -> list[tuple[object, object]]:
    return [(trial["params"], trial["value"]) for trial in report["trials"]]


@pytest.mark.ray
def test_workers_on_ray_that_are_killed_change_nothing(tmp_path: Path, server: str) -> None:
    write_sweep(tmp_path, SHARED)
    folder = DataFolder(tmp_path / "data")
    coordinator = begun(
        tmp_path, "--on", "ray", "--storage", server, "--data-dir", str(folder.root)
    )
    killed: set[int] = set()
    while coordinator.poll() is None and len(killed) < KILLED:
        time.sleep(0.5)  # Ray's workers yield to whoever computes
        runs = len(list_runs(folder)) if folder.root.exists() else 0
        fresh = [one for one in tasks_of(coordinator) if one.pid not in killed]
        if runs > 4 * (len(killed) + 1) and fresh:
            fresh[len(killed) % len(fresh)].send_signal(signal.SIGKILL)
            killed.add(fresh[len(killed) % len(fresh)].pid)
    out, err = coordinator.communicate(timeout=900)
    assert coordinator.returncode == 0, err
    assert len(killed) == KILLED
    record = find_record(folder, "planted", server)
    trials = record.study.get_trials()
    record.storage.close()
    assert [trial.number for trial in trials] == list(range(40))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    names = Counter(run.name for run in list_runs(folder) if run.name != "planted")
    assert set(names) == {f"planted {number}" for number in range(40)}
    alone = begun(tmp_path, "--workers", "2", "--data-dir", str(tmp_path / "alone"))
    undisturbed, err = alone.communicate(timeout=900)
    assert alone.returncode == 0, err
    assert values(json.loads(out)) == values(json.loads(undisturbed))


@pytest.mark.ray
def test_a_stop_leaves_the_trials_for_later(tmp_path: Path, server: str) -> None:
    write_sweep(tmp_path, changed(SHARED, ("name: planted", "name: stopped")))
    options = ("--on", "ray", "--storage", server, "--data-dir", str(tmp_path / "data"))
    folder = DataFolder(tmp_path / "data")
    first = begun(tmp_path, "--workers", "2", *options)
    while first.poll() is None and (not folder.root.exists() or len(list_runs(folder)) < 4):
        time.sleep(0.5)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate(timeout=300)
    assert (first.returncode, "--resume continues" in err) == (130, True), err
    record = find_record(folder, "stopped", server)
    ended = [trial.number for trial in record.study.get_trials() if trial.state.is_finished()]
    record.storage.close()
    assert 0 < len(ended) < 40
    second = begun(tmp_path, "--workers", "2", *options)
    out, err = second.communicate(timeout=900)
    assert second.returncode == 0, err
    assert len(json.loads(out)["trials"]) == 40


def refused(folder: Path, *options: str) -> str:
    """The line of a refusal that created nothing."""
    path = write_sweep(folder)
    before = sorted(folder.rglob("*"))
    data = ("--data-dir", str(folder / "data"))
    done = CliRunner().invoke(cli, ["sweep", "start", str(path), "--on", "ray", *data, *options])
    assert isinstance(done.exception, ConfigurationError), done.output
    assert sorted(folder.rglob("*")) == before
    return str(done.exception)


def test_workers_of_other_machines_need_a_server(tmp_path: Path) -> None:
    assert refused(tmp_path).startswith("--on ray: needs --storage postgresql://")


@pytest.fixture
def any_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aimbot_lab.sweep.storage.check_storage", lambda _address: None)


@pytest.mark.usefixtures("any_storage")
def test_ray_that_is_not_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refused(tmp_path, "--storage", NOWHERE)
    assert line == "--on ray: needs Ray: pip install 'aimbot-lab[ray]'"


@pytest.mark.ray
@pytest.mark.usefixtures("any_storage")
@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "auto", "nonsense"])
def test_a_cluster_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    line = refused(tmp_path, "--storage", NOWHERE)
    assert "\n" not in line
    assert f"--on ray: RAY_ADDRESS={address}: no answer: " in line

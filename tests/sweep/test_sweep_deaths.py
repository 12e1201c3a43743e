"""Whoever is killed, every trial ends once, and the sweep is the one that nobody disturbed."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from optuna.trial import FrozenTrial, TrialState
from sweep_files import PLANTED, changed, write_sweep

from aimbot_lab.sweep.record import find_record
from aimbot_lab.sweep.report import report
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from tests.cli.tiny_runs import begin_in, invoke_in

SLOW = changed(PLANTED, ("  episodes: 500", "  episodes: 500\n  seconds: 0.4"))
SHORT = changed(SLOW, ("trials: 8", "trials: 3"), ("seeds: 2", "seeds: 1"))


def trials(folder: Path) -> list[FrozenTrial]:
    return find_record(DataFolder(folder / "data"), "planted", None).search_queue().trials


REPEATS = int(os.environ.get("AIMBOT_LAB_SWEEP_KILLS", "1"))  # 10 before a release
PATIENCE = 900.0  # seconds; other processes may take the cores


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return begin_in(folder, "sweep", "sweep.yaml", "--data-dir", "data", "--json", *arguments)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err
    return out


def worth(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Of every trial its values and what it was worth, in full precision."""
    return [(trial["number"], trial["params"], trial["value"]) for trial in report["trials"]]


def states(folder: Path) -> Counter[str]:
    """Of the trials, read from the file itself, which is quick; none before it is made."""
    file = folder / "data" / "sweeps" / "planted" / "study.db"
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as study:
            return Counter(state for (state,) in study.execute("SELECT state FROM trials"))
    except sqlite3.Error:
        return Counter()


def wait_for_work(process: subprocess.Popen[str], folder: Path, ended: int) -> None:
    """Wait until `ended` trials have ended and others run."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = states(folder)
        if found["RUNNING"] and found.total() - found["RUNNING"] - found["WAITING"] >= ended:
            return
        time.sleep(0.05)
    raise AssertionError(f"no trial ran: {process.communicate()}")


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return [child for child in psutil.Process(process.pid).children() if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    """Whether it works; one that was killed and not waited for yet does not."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def gone(processes: list[psutil.Process]) -> bool:
    """Whether these processes end by themselves."""
    return not psutil.wait_procs(processes, timeout=PATIENCE)[1]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the same sweep, one worker, nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write_sweep(folder, changed(SLOW, ("seconds: 0.4", "seconds: 0.0")))
    words = ("sweep", "sweep.yaml", "--data-dir", "data", "--json", "--workers", "1")
    return dict(invoke_in(folder, *words).document)


@pytest.mark.campaign
@pytest.mark.parametrize("repeat", range(REPEATS))
def test_kills_change_nothing(tmp_path: Path, undisturbed: dict[str, Any], repeat: int) -> None:
    write_sweep(tmp_path, SLOW)
    luck = random.Random(repeat)
    first = start(tmp_path)
    wait_for_work(first, tmp_path, ended=0)
    time.sleep(luck.random())
    luck.choice(workers_of(first)).send_signal(signal.SIGKILL)
    wait_for_work(first, tmp_path, ended=luck.randrange(1, 4))
    workers = workers_of(first)
    first.kill()
    first.communicate()
    assert gone(workers), "a worker outlived its coordinator"
    assert not states(tmp_path)["RUNNING"], "an orphan is left"
    report = json.loads(finish(start(tmp_path, "--resume")))
    assert [trial["state"] for trial in report["trials"]] == ["done"] * 8
    assert worth(report) == worth(undisturbed)
    assert report["best"] == undisturbed["best"]
    runs = list_runs(DataFolder(tmp_path / "data"))
    assert Counter((run.name, run.status) for run in runs) == {
        ("planted", "FINISHED"): 1,
        **{(f"planted {number}", "FINISHED"): 1 for number in range(8)},
    }


@pytest.mark.campaign
def test_a_stop_saves_and_the_sweep_goes_on(tmp_path: Path) -> None:
    write_sweep(tmp_path, SHORT)
    first = start(tmp_path, "--workers", "1")
    wait_for_work(first, tmp_path, ended=1)
    workers = workers_of(first)
    first.send_signal(signal.SIGINT)
    finish(first, code=130)
    assert gone(workers)
    stopped = trials(tmp_path)
    assert TrialState.RUNNING not in {trial.state for trial in stopped}
    statuses = {run.status for run in list_runs(DataFolder(tmp_path / "data"))}
    assert statuses <= {"KILLED", "FINISHED"}
    assert report(find_record(DataFolder(tmp_path / "data"), "planted", None)).status == "stopped"
    words = ("sweep", "sweep.yaml", "--data-dir", "data", "--json", "--workers", "1", "--resume")
    found = invoke_in(tmp_path, *words).document["trials"]
    assert [trial["state"] for trial in found] == ["done"] * 3
    ended = {trial.number: trial.value for trial in stopped if trial.state.is_finished()}
    assert ended.items() <= {trial["number"]: trial["value"] for trial in found}.items()

"""One process at a time writes a run, whatever host names, containers and machines there are."""

import json
import os
import subprocess
import sys
import time

import pytest
from dead_runs import leave_elsewhere, let_lease_end
from owned_runs import seen_from

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking import ownership
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.opening import claim_run
from aimbot_lab.tracking.ownership import this_process
from aimbot_lab.tracking.run_folder import (
    create_run_folder,
    find_run_folder,
    living_folders,
    run_folders,
)

PLACES = [
    {"host": "other"},
    {"namespace": "pid:[1]"},
    {"host": "other", "namespace": "pid:[1]"},
]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_container_of_a_machine_sees_that_an_owner_lives(data_folder, monkeypatch, place):
    folder = create_run_folder(data_folder, this_process("living", None)).named("a" * 32)
    let_lease_end(folder.path)
    with monkeypatch.context() as patch:
        seen_from(patch, **place)
        assert close_orphan_runs(data_folder) == []
        assert [one.run_id for one in living_folders(data_folder)] == ["a" * 32]
        with pytest.raises(ConfigurationError, match="still being trained by process"):
            claim_run(data_folder, "a" * 32)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_container_of_a_machine_sees_at_once_that_an_owner_died(
    data_folder, dead_run, monkeypatch, place
):
    dead_run.checkpoints.mkdir()
    with monkeypatch.context() as patch:
        seen_from(patch, **place)
        assert close_orphan_runs(data_folder) == [dead_run.run_id]
        claim_run(data_folder, dead_run.run_id).release()


def test_a_killed_process_frees_its_run_by_its_death(data_folder):
    script = f"""
from pathlib import Path
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.ownership import this_process
from aimbot_lab.tracking.run_folder import create_run_folder
create_run_folder(DataFolder(Path({str(data_folder.root)!r})), this_process("x", None))
print("held", flush=True)
input()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    (folder,) = run_folders(data_folder)
    assert not folder.is_free
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert folder.is_free
    process.communicate()


def test_a_machine_elsewhere_is_believed_until_its_lease_is_over(data_folder, dead_run):
    dead_run.checkpoints.mkdir()
    leave_elsewhere(dead_run.path, dead_run.owner)
    assert close_orphan_runs(data_folder) == []
    with pytest.raises(ConfigurationError) as refused:
        claim_run(data_folder, dead_run.run_id)
    assert f"aimbot-lab resume {dead_run.run_id} --take-over" in str(refused.value)
    assert "renewed its lease" in str(refused.value)
    let_lease_end(dead_run.path)
    assert close_orphan_runs(data_folder) == [dead_run.run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]
    claim_run(data_folder, dead_run.run_id).release()


def test_a_lease_is_measured_by_the_clock_of_the_disk(data_folder, dead_run, monkeypatch):
    owner = leave_elsewhere(dead_run.path, dead_run.owner)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    left = ownership.lease_left(dead_run.path, owner)
    assert 0.9 * ownership.LEASE_SECONDS < left <= ownership.LEASE_SECONDS


def test_a_lease_is_renewed_by_a_living_owner(data_folder, monkeypatch):
    monkeypatch.setattr(ownership, "RENEWAL_SECONDS", 0.001)
    folder = create_run_folder(data_folder, this_process("living", None))
    let_lease_end(folder.path)
    deadline = time.monotonic() + 300
    while ownership.lease_left(folder.path, folder.owner) < 1.0:
        assert time.monotonic() < deadline
    folder.remove()


def test_an_older_versions_folder_is_judged_by_its_process_number(data_folder, dead_run):
    old = dict(vars(this_process("deadbeef", None)))
    for name in ("pid_namespace", "lock", "locked"):
        del old[name]
    file = dead_run.path / "owner.json"
    for pid, free in ((os.getpid(), False), (2**22 + 1, True)):
        file.write_text(json.dumps({**old, "pid": pid}))
        folder = find_run_folder(data_folder, dead_run.run_id)
        assert folder.is_free == free
    file.write_text(json.dumps({**old, "host": "elsewhere"}))
    assert not find_run_folder(data_folder, dead_run.run_id).is_free
    dead_run.checkpoints.mkdir()
    claim_run(data_folder, dead_run.run_id, take_over=True).release()


def test_a_machine_of_the_same_name_is_believed_until_its_lease_is_over(
    data_folder, dead_run, monkeypatch
):
    dead_run.checkpoints.mkdir()
    with monkeypatch.context() as patch:
        seen_from(patch, boot="another boot")  # whose locks, on a network's disk, are its own
        assert close_orphan_runs(data_folder) == []
        with pytest.raises(ConfigurationError, match="renewed its lease"):
            claim_run(data_folder, dead_run.run_id)
        let_lease_end(dead_run.path)
        assert close_orphan_runs(data_folder) == [dead_run.run_id]

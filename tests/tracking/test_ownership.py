"""One process at a time writes a run: owners, their files, and hosts, containers and machines."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
from owned_runs import leave_elsewhere, let_lease_end, seen_from

from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import run_folder
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal_tracker import claim_run, reopen_run
from aimbot_lab.tracking.run_folder import (
    RunFolder,
    create_run_folder,
    find_run_folder,
    living_folders,
    read_owner,
    run_folders,
    this_process,
    write_owner,
)

ME = this_process("token", None)


@pytest.mark.parametrize(
    ("changes", "is_gone"),
    [
        ({}, False),
        ({"started": ME.started - 100}, True),  # another process under the same number
        ({"boot": "another", "pid_namespace": None}, True),  # as an older version wrote it
        ({"boot": "another"}, False),  # a machine of the same name
        ({"pid": 2**22 + 1}, True),
        ({"pid": -5}, True),
        ({"pid": 2**22 + 1, "pid_namespace": "pid:[1]"}, False),
        ({"host": "another", "boot": "another", "pid": 1}, False),
    ],
)
def test_a_process_is_gone_where_its_machine_knows_that_whatever_its_clock(
    changes, is_gone, monkeypatch
):
    owner = replace(ME, **changes)
    assert owner.is_gone() is is_gone
    boot_time, create_time = psutil.boot_time, psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time() + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: create_time(self) + 3600)
    assert owner.is_gone() is is_gone


def test_a_killed_process_is_gone_though_nobody_has_waited_for_it(monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = psutil.Process(process.pid).create_time() - psutil.boot_time()
    owner = replace(ME, pid=process.pid, started=started)
    assert not owner.is_gone()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert owner.is_gone()
    process.communicate()
    assert owner.is_gone()


def test_an_owner_reads_back_and_is_private_and_a_damaged_one_is_none(tmp_path):
    path = tmp_path / "owner.json"
    assert read_owner(path) is None
    owner = replace(ME, tracking_uri="http://me:secret@host")
    write_owner(path, owner)
    assert read_owner(path) == owner
    assert path.stat().st_mode & 0o077 == 0
    values = json.loads(path.read_text())
    del values["check"]
    hostile = [json.dumps({**values, "lock": lock}) for lock in ("../../x", "/etc/passwd", 5)]
    for content in (b"", b"{", b"[]", b'{"host": 1}', b"\xff", *map(str.encode, hostile)):
        path.write_bytes(content)
        assert read_owner(path) is None


def test_a_file_system_without_locks_leaves_it_to_numbers_and_leases(data_folder, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.fcntl, "flock", refuse)
        folder = create_run_folder(data_folder, this_process("x", None))
        assert not folder.owner.locked
        assert not folder.is_free
        let_lease_end(folder.path)
        assert folder.is_free
        folder.remove()
    monkeypatch.setattr(run_folder, "write_owner", refuse)
    with pytest.raises(StoreError, match="not supported"):
        create_run_folder(data_folder, this_process("x", None))
    assert list(data_folder.runs.iterdir()) == []  # what can't be held is not left behind


def test_an_opening_without_an_owner_is_deleted_once_none_can_come(data_folder):
    path = data_folder.runs / "opening-abc"
    path.mkdir()
    assert close_orphan_runs(data_folder) == []
    assert path.exists()  # its process may be about to write it
    long_ago = time.time() - 3600
    os.utime(path, (long_ago, long_ago))
    assert close_orphan_runs(data_folder) == []
    assert not path.exists()


def test_every_damaged_byte_of_an_owner_file_is_noticed(data_folder, dead_run):
    dead_run.checkpoints.mkdir()
    file = dead_run.path / "owner.json"
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        owner = read_owner(file)
        assert owner in (None, dead_run.owner), place
    for content in (b"", whole[:-1]):
        file.write_bytes(content)
        with pytest.raises(ConfigurationError) as refused:
            claim_run(data_folder, dead_run.run_id)
        assert str(file) in str(refused.value)
        assert "--take-over" in str(refused.value)
    assert close_orphan_runs(data_folder) == []
    claimed = claim_run(data_folder, dead_run.run_id, take_over=True)
    assert reopen_run(data_folder, dead_run.run_id, claimed=claimed).finish("FAILED").complete


def test_a_lock_file_that_was_deleted_ends_no_living_run(data_folder, dead_run):
    living = create_run_folder(data_folder, this_process("living", None)).named("a" * 32)
    for folder in (living, dead_run):
        (folder.path / folder.owner.lock).unlink()
    assert not find_run_folder(data_folder, "a" * 32).is_free
    with pytest.raises(ConfigurationError, match="still trained"):
        claim_run(data_folder, "a" * 32)
    gone = replace(dead_run.owner, pid=2**22 + 1)
    write_owner(dead_run.path / "owner.json", gone)
    assert find_run_folder(data_folder, dead_run.run_id).is_free
    write_owner(dead_run.path / "owner.json", replace(gone, host="other", boot="another"))
    with pytest.raises(ConfigurationError, match=r"whose lock file was deleted.* --take-over"):
        claim_run(data_folder, dead_run.run_id)


def test_every_container_of_a_machine_sees_that_an_owner_lives_and_at_once_that_it_died(
    data_folder, dead_run, monkeypatch
):
    folder = create_run_folder(data_folder, this_process("living", None)).named("a" * 32)
    let_lease_end(folder.path)
    dead_run.checkpoints.mkdir()
    with monkeypatch.context() as patch:
        seen_from(patch, host="other", namespace="pid:[1]")
        assert close_orphan_runs(data_folder) == [dead_run.run_id]
        claim_run(data_folder, dead_run.run_id).release()
        assert [one.run_id for one in living_folders(data_folder)] == ["a" * 32]
        with pytest.raises(ConfigurationError, match="still trained by process"):
            claim_run(data_folder, "a" * 32)


def test_a_killed_process_frees_its_run_by_its_death(data_folder):
    script = f"""
from pathlib import Path
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import this_process
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


@pytest.mark.parametrize("same_name", [False, True])
def test_a_machine_elsewhere_is_believed_until_its_lease_is_over(
    data_folder, dead_run, monkeypatch, same_name
):
    dead_run.checkpoints.mkdir()
    if same_name:
        seen_from(monkeypatch, boot="another boot")  # whose locks on a network's disk are its own
    else:
        owner = leave_elsewhere(dead_run.path, dead_run.owner)
        with monkeypatch.context() as patch:  # it is measured by the clock of the disk
            patch.setattr(time, "time", lambda: 0.0)
            left = RunFolder(dead_run.path, owner).lease_left
        assert 0.9 * run_folder.LEASE_SECONDS < left <= run_folder.LEASE_SECONDS
    assert close_orphan_runs(data_folder) == []
    with pytest.raises(ConfigurationError, match="renewed its lease") as refused:
        claim_run(data_folder, dead_run.run_id)
    assert f"aimbot-lab resume {dead_run.run_id} --take-over" in str(refused.value)
    let_lease_end(dead_run.path)
    assert close_orphan_runs(data_folder) == [dead_run.run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]
    claim_run(data_folder, dead_run.run_id).release()


def test_a_lease_is_renewed_by_a_living_owner(data_folder, monkeypatch):
    monkeypatch.setattr(run_folder, "RENEWAL_SECONDS", 0.001)
    folder = create_run_folder(data_folder, this_process("living", None))
    let_lease_end(folder.path)
    deadline = time.monotonic() + 300
    while folder.lease_left < 1.0:
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

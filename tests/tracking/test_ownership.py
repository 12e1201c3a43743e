"""One process at a time writes a run, whatever host names, containers and machines there are."""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from dead_runs import leave_elsewhere, let_lease_end
from fake_store import FakeStore

from aimbot_lab.foundation.errors import ConfigurationError, RunLostError, StoreError
from aimbot_lab.tracking.journal_tracker import RunAddress, start_tracker
from aimbot_lab.tracking.runs import owner as owner_module
from aimbot_lab.tracking.runs import ownership
from aimbot_lab.tracking.runs.history import list_runs
from aimbot_lab.tracking.runs.opening import RunDescription, open_run
from aimbot_lab.tracking.runs.orphan_runs import close_orphan_runs
from aimbot_lab.tracking.runs.owner import read_owner, this_process, write_owner
from aimbot_lab.tracking.runs.reopening import claim_run, find_run_folder, reopen_run
from aimbot_lab.tracking.runs.run_folder import (
    create_run_folder,
    living_folders,
    run_folders,
)
from aimbot_lab.tracking.settings import TrackingSettings


def seen_from(monkeypatch, *, host=None, namespace=None, boot=None):
    """Have this process look as one elsewhere looks to the others."""
    if host is not None:
        monkeypatch.setattr(platform, "node", lambda: host)
    if namespace is not None:
        monkeypatch.setattr(owner_module, "_pid_namespace", lambda: namespace)
        monkeypatch.setattr(owner_module.psutil, "Process", _no_process)  # of that number
    if boot is not None:
        monkeypatch.setattr(owner_module, "_boot_id", lambda: boot)


def _no_process(pid=None):
    raise owner_module.psutil.NoSuchProcess(pid)


PLACES = [
    {"host": "other"},
    {"namespace": "pid:[1]"},
    {"host": "other", "namespace": "pid:[1]"},
]


def begun(data_folder):
    """A run of this process with a folder for checkpoints, and a metric."""
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("owned"))
    data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    tracker.log_metrics(10, {"a": 1.0})
    return tracker


def journal_of(data_folder, run_id):
    lines = (data_folder.run_folder(run_id) / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


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
from aimbot_lab.tracking.runs.owner import this_process
from aimbot_lab.tracking.runs.run_folder import create_run_folder
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
    deadline = time.monotonic() + 30
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


def test_who_was_taken_over_writes_nothing_any_more(data_folder, monkeypatch, store):
    monkeypatch.setattr(ownership, "_WAIT_SECONDS", 0.0)  # the old owner is in this very thread
    monkeypatch.setattr(ownership, "RENEWAL_SECONDS", 3600.0)  # it looks when it is asked to
    old = begun(data_folder)
    run_id = old.run_id
    old.grow("a.csv", "1\n", place=0)
    new = reopen_run(data_folder, run_id, claimed=claim_run(data_folder, run_id, take_over=True))
    old.grow("a.csv", "from the old owner\n", place=2)  # it can't know yet: it has not looked
    before = journal_of(data_folder, run_id)
    for write in (
        lambda: old.log_metrics(20, {"a": 2.0}),
        lambda: old.set_tags({"x": "y"}),
        lambda: old.log_text("text", "a.txt"),
        lambda: old.grow("a.csv", "3\n", place=2),
        old.check_owner,
    ):
        with pytest.raises(RunLostError, match=rf"taken over by process {os.getpid()} on "):
            write()
    report = old.finish("FAILED")
    assert report.status == "FAILED"
    assert journal_of(data_folder, run_id) == before
    assert read_owner(data_folder.run_folder(run_id) / "owner.json").pid == os.getpid()
    new.grow("a.csv", "2\n", place=2)
    new.log_metrics(20, {"a": 5.0})
    assert new.finish("KILLED").complete
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]
    history = store.client.get_metric_history(run_id, "a")
    assert [(point.step, point.value) for point in history] == [(10, 1.0), (20, 5.0)]
    assert store.download(run_id, "a.csv").read_text() == "1\n2\n"


def test_what_waited_is_not_sent_by_who_was_taken_over(data_folder, monkeypatch):
    monkeypatch.setattr(ownership, "_WAIT_SECONDS", 0.0)
    folder = create_run_folder(data_folder, this_process("old", None)).named("a" * 32)
    store = FakeStore()
    store.open.clear()
    tracker = start_tracker(RunAddress("a" * 32, "1", "fake:"), folder, sink=store)
    tracker.log_metrics(1, {"a": 1.0})
    assert store.asked.wait(30)
    for step in range(2, 400):
        tracker.log_metrics(step, {"a": 1.0})
    claimed = claim_run(data_folder, "a" * 32, take_over=True)
    store.open.set()
    tracker._sender._thread.join(30)
    assert store.steps == [1]  # that was under way
    assert not tracker.finish("FINISHED").complete
    assert not claimed.is_free
    claimed.release()


def test_who_takes_over_waits_until_the_old_owner_has_let_go(data_folder):
    old = create_run_folder(data_folder, this_process("old", None)).named("a" * 32)
    looks = []

    def look():
        looks.append(old.hold.is_lost)
        with pytest.raises(RunLostError):
            old.check_owner()
        old.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ownership.time, "sleep", lambda _: look())
        claimed = claim_run(data_folder, "a" * 32, take_over=True)
    assert looks == [False]
    assert [path.name for path in claimed.path.glob("lock-*")] == [claimed.owner.lock]
    assert not claimed.is_free
    claimed.release()
    assert list(claimed.path.glob("lock-*")) == []


def test_a_suspended_owner_whose_run_was_closed_meanwhile_finds_that_out(data_folder, monkeypatch):
    tracker = begun(data_folder)
    with monkeypatch.context() as patch:
        seen_from(patch, boot="another boot", host="another")
        let_lease_end(data_folder.run_folder(tracker.run_id))
        assert close_orphan_runs(data_folder) == [tracker.run_id]
    with pytest.raises(RunLostError, match="taken over by another process"):
        tracker.log_metrics(20, {"a": 2.0})
    tracker.finish("FINISHED")
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]


def test_a_file_system_without_locks_leaves_it_to_numbers_and_leases(data_folder, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(ownership.fcntl, "flock", refuse)
    folder = create_run_folder(data_folder, this_process("x", None))
    assert not folder.owner.locked
    assert not folder.is_free
    let_lease_end(folder.path)
    assert folder.is_free


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


def test_an_owner_cannot_name_a_lock_outside_its_folder(tmp_path):
    write_owner(tmp_path / "owner.json", this_process("x", None))
    values = json.loads((tmp_path / "owner.json").read_text())
    del values["check"]
    for lock in ("../../x", "/etc/passwd", 5):
        (tmp_path / "owner.json").write_text(json.dumps({**values, "lock": lock}))
        assert read_owner(tmp_path / "owner.json") is None


def test_a_folder_that_can_not_be_held_is_not_left_behind(data_folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ownership, "write_owner", full)
    with pytest.raises(StoreError, match="No space left"):
        create_run_folder(data_folder, this_process("x", None))
    assert list(data_folder.runs.iterdir()) == []


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


def test_a_lock_file_that_was_deleted_ends_no_living_run(data_folder, dead_run):
    living = create_run_folder(data_folder, this_process("living", None)).named("a" * 32)
    for folder in (living, dead_run):
        (folder.path / folder.owner.lock).unlink()
    assert not find_run_folder(data_folder, "a" * 32).is_free
    with pytest.raises(ConfigurationError, match="still being trained"):
        claim_run(data_folder, "a" * 32)
    gone = replace(dead_run.owner, pid=2**22 + 1)
    write_owner(dead_run.path / "owner.json", gone)
    assert find_run_folder(data_folder, dead_run.run_id).is_free
    write_owner(dead_run.path / "owner.json", replace(gone, host="other", boot="another"))
    with pytest.raises(ConfigurationError, match=r"whose lock file was deleted.* --take-over"):
        claim_run(data_folder, dead_run.run_id)

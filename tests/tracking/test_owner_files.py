"""Owner and lock files that are missing, damaged or deleted."""

import json
import os
import time
from dataclasses import replace

import pytest
from dead_runs import let_lease_end

from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import ownership
from aimbot_lab.tracking.history import close_orphan_runs
from aimbot_lab.tracking.opening import claim_run, reopen_run
from aimbot_lab.tracking.ownership import read_owner, this_process, write_owner
from aimbot_lab.tracking.run_folder import (
    create_run_folder,
    find_run_folder,
)


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

import os
import subprocess
import sys
from dataclasses import replace

import psutil

from aimbot_lab.tracking.ownership import read_owner, this_process, write_owner

ME = this_process("token", None)


def test_a_running_process_is_not_gone():
    assert not ME.is_gone()


def test_setting_the_clock_does_not_make_an_owner_look_dead(monkeypatch):
    boot_time, create_time = psutil.boot_time, psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: boot_time() + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: create_time(self) + 3600)
    assert not ME.is_gone()


def test_a_process_that_ended_is_gone():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert replace(ME, pid=process.pid).is_gone()


def test_a_killed_process_that_nobody_waited_for_is_gone():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = replace(ME, pid=process.pid, started=_started(process.pid))
    assert not owner.is_gone()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert owner.is_gone()
    process.communicate()


def test_another_process_under_the_same_number_does_not_count():
    assert replace(ME, started=ME.started - 100).is_gone()


def test_a_machine_that_was_started_again_holds_no_old_process():
    before_namespaces = replace(ME, pid_namespace=None)  # as an older version wrote it
    assert replace(before_namespaces, boot="another").is_gone()


def test_a_machine_of_the_same_name_is_not_taken_for_this_one():
    assert not replace(ME, boot="another").is_gone()


def test_a_process_number_says_nothing_in_another_namespace():
    assert replace(ME, pid=2**22 + 1).is_gone()
    assert not replace(ME, pid=2**22 + 1, pid_namespace="pid:[1]").is_gone()


def test_other_machines_are_left_alone():
    assert not replace(ME, host="another", boot="another", pid=1).is_gone()


def test_an_owner_reads_back_and_is_private(tmp_path):
    path = tmp_path / "owner.json"
    owner = replace(ME, tracking_uri="http://me:secret@host")
    write_owner(path, owner)
    assert read_owner(path) == owner
    assert path.stat().st_mode & 0o077 == 0


def test_a_damaged_owner_file_is_no_owner(tmp_path):
    path = tmp_path / "owner.json"
    for content in (b"", b"{", b"[]", b'{"host": 1}', b"\xff"):
        path.write_bytes(content)
        assert read_owner(path) is None
    assert read_owner(tmp_path / "missing") is None


def _started(pid):
    return psutil.Process(pid).create_time() - psutil.boot_time()

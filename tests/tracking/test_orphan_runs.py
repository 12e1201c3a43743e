"""Runs whose process is gone: closed, taken over, resumed, waiting for a store; their folders."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from click.testing import CliRunner
from fake_store import FakeStore
from owned_runs import begun, journal_of, leave_folder, let_lease_end, seen_from

from aimbot_lab.cli.commands.runs import MAX_WAITING, runs
from aimbot_lab.foundation.errors import ConfigurationError, RunLostError, StoreError
from aimbot_lab.foundation.files import exclusive
from aimbot_lab.tracking import history as reaper
from aimbot_lab.tracking import journal, run_folder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal import (
    EndEntry,
    GrowingFiles,
    Journal,
    MetricsEntry,
    ResumeEntry,
    decode,
)
from aimbot_lab.tracking.journal_tracker import (
    JournalTracker,
    RunAddress,
    RunDescription,
    claim_run,
    open_run,
    reopen_run,
)
from aimbot_lab.tracking.run_folder import (
    OWNER_TAG,
    WaitingRun,
    create_run_folder,
    find_run_folder,
    read_owner,
    run_folders,
    this_process,
    waiting_runs,
)
from aimbot_lab.tracking.settings import TrackingSettings

DEAD = this_process("deadbeef", None)


def test_a_dead_run_is_delivered_and_killed_and_nothing_is_stored_twice(
    data_folder, store, dead_run, tmp_path
):
    run_id, artifacts = dead_run.run_id, data_folder.artifacts / dead_run.run_id / "artifacts"
    (artifacts / "notes").mkdir(parents=True)
    (artifacts / "notes" / ".artifact.uploading.x1y2").write_text("hal")  # as a kill leaves it
    growing = GrowingFiles(dead_run.path)
    growing.write("episodes.csv", b"1\n2\n", place=0)
    growing.close()
    before = tmp_path / "before"
    shutil.copytree(dead_run.path, before)
    assert close_orphan_runs(data_folder) == [run_id]
    run = store.client.get_run(run_id)
    assert run.info.status == "KILLED"
    assert run.info.end_time >= run.info.start_time
    assert run.data.metrics["a"] == 1.0
    assert run.data.tags["lab.lesson"] == "3"
    assert store.download(run_id, "episodes.csv").read_bytes() == b"1\n2\n"
    assert store.download(run_id, "notes/a.txt").read_text() == "x"
    assert [path.name for path in (artifacts / "notes").iterdir()] == ["a.txt"]
    assert list(data_folder.runs.iterdir()) == []
    assert close_orphan_runs(data_folder) == []
    shutil.copytree(before, dead_run.path)
    close_orphan_runs(data_folder)
    again = store.client.get_run(run_id)
    assert [len(store.client.get_metric_history(run_id, key)) for key in ("a", "nan")] == [1, 1]
    assert (again.data.tags, again.info.status) == (run.data.tags, "KILLED")


def test_a_status_given_before_the_death_stays(data_folder, store, dead_run):
    journal = Journal(dead_run.path)
    journal.append(EndEntry("FINISHED", 2_000_000_000_000))
    journal.close()
    assert close_orphan_runs(data_folder) == []
    info = store.client.get_run(dead_run.run_id).info
    assert (info.status, info.end_time) == ("FINISHED", 2_000_000_000_000)


def test_living_runs_and_those_of_other_machines_are_left_alone(data_folder, store):
    create_run_folder(data_folder, this_process("living", None))
    leave_folder(data_folder, replace(DEAD, token="elsewhere", host="another", boot="another"))
    before = sorted(data_folder.runs.rglob("*"))
    assert close_orphan_runs(data_folder) == []
    assert sorted(data_folder.runs.rglob("*")) == before


def test_a_death_before_the_folder_had_its_runs_name_leaves_no_running_run(data_folder, store):
    leave_folder(data_folder, DEAD)
    assert close_orphan_runs(data_folder) == []  # the store had none yet
    assert (list(data_folder.runs.iterdir()), list_runs(data_folder)) == ([], [])
    leave_folder(data_folder, DEAD)
    run_id = store.create_run(store.experiment_id("x"), "dead", tags={OWNER_TAG: DEAD.label})
    assert close_orphan_runs(data_folder) == [run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]


def test_a_half_deleted_folder_is_never_taken_for_a_dead_run(data_folder, store, dead_run):
    dead_run.path.rename(data_folder.runs / f"done-{dead_run.run_id}")
    assert close_orphan_runs(data_folder) == []
    assert store.client.get_run(dead_run.run_id).info.status == "RUNNING"
    assert list(data_folder.runs.iterdir()) == []


def test_what_cannot_be_delivered_now_is_delivered_later(data_folder, dead_run, monkeypatch):
    def down(*_):
        raise StoreError("the store is down")

    with monkeypatch.context() as patch:
        patch.setattr(reaper, "open_store", down)
        assert close_orphan_runs(data_folder) == []
    assert dead_run.path.is_dir()
    assert close_orphan_runs(data_folder) == [dead_run.run_id]


def test_a_journal_that_others_wrote_reads_writes_and_deletes_nothing_of_this_account(
    data_folder, store, dead_run, tmp_path
):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "key").write_text("secret")
    files = dead_run.path / "files"
    for name in ("link", "new"):
        (files / name).mkdir()
    (files / "link" / "key").symlink_to(own / "key")
    (files / "new" / "config").write_text("evil")
    up = "/".join([".."] * len(files.resolve().parts[1:]))
    kept = [str(own / "key"), f"files/{up}{own}/key", "files/link/key", "files/new/config"]
    artifacts = data_folder.artifacts / dead_run.run_id / "artifacts"
    artifacts.mkdir(parents=True)
    (artifacts / "led").symlink_to(own)
    with (dead_run.path / "journal.jsonl").open("a") as journal:
        for one in kept:
            journal.write(json.dumps({"kind": "file", "kept": one, "folder": "led"}) + "\n")
    faults = []
    close_orphan_runs(data_folder, on_fault=lambda _, why: faults.append(why))
    assert [path.name for path in own.iterdir()] == ["key"]
    assert [path.name for path in artifacts.rglob("*") if path.is_file()] == ["a.txt"]
    assert faults[:2] == ["a journal line was unreadable"] * 2
    assert "not a folder of that run: nothing is written or deleted there" in faults[2]
    assert store.client.get_run(dead_run.run_id).info.status == "KILLED"  # the rest has arrived


def test_damaged_lines_hold_no_run_back(data_folder, store, dead_run):
    with (dead_run.path / "journal.jsonl").open("a") as journal:
        for line in (
            '{"kind": "end", "status": "FINISHEE", "time_ms": 1}',
            '{"kind": "metrics", "step": 1, "time_ms": 1, "values": null}',
            '{"kind": "metrics", "step": 1000000000000000000000, "time_ms": 1, "values": {"a": 1}}',
            '{"kind": "tags", "tags": {"a": 5}}',
            '{"kind": ' + "[" * 100_000,
        ):
            journal.write(f"{line}\n")
    faults = []
    closed = close_orphan_runs(data_folder, on_fault=lambda _, why: faults.append(why))
    assert closed == [dead_run.run_id]
    assert faults == ["a journal line was unreadable"] * 5
    assert store.client.get_run(dead_run.run_id).data.metrics["a"] == 1.0


def test_no_command_waits_for_pipes_among_a_runs_files(data_folder, dead_run):
    other = leave_folder(data_folder, DEAD).named("0" * 32).path
    for name in ("checkpoints/run.json", "delivered", "journal.jsonl", "owner.json"):
        for file in (dead_run.path / name, other / name):
            file.parent.mkdir(exist_ok=True)
            file.unlink(missing_ok=True)
            os.mkfifo(file)
        assert call(data_folder).exit_code == 0


def test_a_folder_that_cannot_be_read_holds_no_other_run_back(data_folder, dead_run):
    first = leave_folder(data_folder, DEAD).named("0" * 32).path
    (first / "journal.jsonl").mkdir()  # as where another account wrote it
    faults = {}
    assert close_orphan_runs(data_folder, on_fault=faults.__setitem__) == [dead_run.run_id]
    assert [*faults] == [first.name]


def test_names_of_folders_send_nothing_to_the_terminal(folder):
    path = folder.runs / "x\x1b]0;title\x07\u202ey"
    path.mkdir(parents=True)
    (path / "owner.json").write_text("{")
    assert r"x\x1b]0;title\x07\u202ey/owner.json: is damaged" in call(folder).stderr


def test_of_several_reapers_at_once_one_closes_a_run_and_none_waits(data_folder, dead_run):
    with ThreadPoolExecutor(1) as pool, exclusive(data_folder.orphan_lock):
        assert pool.submit(close_orphan_runs, data_folder).result(timeout=300) == []
    with ThreadPoolExecutor(4) as pool:
        reaped = pool.map(lambda _: close_orphan_runs(data_folder), range(4))
    assert sorted(reaped) == [[], [], [], [dead_run.run_id]]


def test_a_lock_is_freed_by_its_holders_death(tmp_path):
    code = (
        "import os, sys; from pathlib import Path\n"
        "from aimbot_lab.foundation.files import exclusive\n"
        "with exclusive(Path(sys.argv[1])): os.kill(os.getpid(), 9)\n"
    )
    lock = tmp_path / "lock"
    assert subprocess.run([sys.executable, "-c", code, lock], check=False).returncode == -9
    with exclusive(lock, wait=False):
        pass


def test_who_was_taken_over_writes_nothing_any_more(data_folder, monkeypatch, store):
    monkeypatch.setattr(run_folder, "_WAIT_SECONDS", 0.0)  # the old owner is in this very thread
    monkeypatch.setattr(run_folder, "RENEWAL_SECONDS", 3600.0)  # it looks when it is asked to
    old = begun(data_folder)
    run_id = old.run_id
    old.grow("a.csv", "1\n", place=0)
    new = reopen_run(data_folder, run_id, claimed=claim_run(data_folder, run_id, take_over=True))
    with suppress(RunLostError):  # unless it still sent what came before, and looked
        old.grow("a.csv", "from the old owner\n", place=2)
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
    monkeypatch.setattr(run_folder, "_WAIT_SECONDS", 0.0)
    folder = create_run_folder(data_folder, this_process("old", None)).named("a" * 32)
    store = FakeStore()
    store.open.clear()
    tracker = JournalTracker(RunAddress("a" * 32, "1", "fake:"), folder, sink=store)
    tracker.log_metrics(1, {"a": 1.0})
    assert store.asked.wait(300)
    for step in range(2, 400):
        tracker.log_metrics(step, {"a": 1.0})
    claimed = claim_run(data_folder, "a" * 32, take_over=True)
    store.open.set()
    tracker._sender._thread.join(300)
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
        patch.setattr(run_folder.time, "sleep", lambda _: look())
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


@pytest.mark.parametrize("settled", [True, False])
def test_a_folder_kept_for_a_resumption_alone_goes_with_its_checkpoints(
    data_folder: DataFolder, settled: bool
) -> None:
    folder = create_run_folder(data_folder, this_process("trial", None)).named("a" * 32)
    folder.checkpoints.mkdir()
    if settled:
        folder.settle()
    else:
        folder.release()  # with something left for the store
    (found,) = run_folders(data_folder)
    found.forget_checkpoints()
    assert folder.path.exists() is not settled
    assert not folder.checkpoints.exists()


NOWHERE = "http://me:secret@127.0.0.1:9"


@pytest.fixture
def folder(tmp_path):
    """A data folder without a store."""
    return DataFolder(tmp_path / "data")


def leave(folder, run_id, *, entries=3, pid=None, uri=NOWHERE):
    """A run that ended with `entries` in its journal, of a process that is gone."""
    owner = replace(this_process(f"token of {run_id}", uri), pid=pid)
    path = leave_folder(folder, owner).named(run_id).path
    journal = Journal(path)
    for step in range(entries - 1):
        journal.append(MetricsEntry(step, 1000, {"x": 1.0}))
    journal.append(EndEntry("FINISHED", 2000))
    journal.close()
    return path


def call(folder, *arguments):
    return CliRunner().invoke(runs, ["--data-dir", str(folder.root), *arguments])


def test_waiting_runs_say_how_much_waits_for_whom(folder):
    assert waiting_runs(DataFolder(folder.root / "none")) == []
    create_run_folder(folder, this_process("living", None)).named("c" * 32)
    leave_folder(folder, this_process("nameless", None))
    assert waiting_runs(folder) == []
    leave(folder, "a" * 32)
    shown = call(folder)
    assert (shown.exit_code, shown.stdout) == (0, "")
    (line,) = shown.stderr.splitlines()
    assert f"run {'a' * 32}: 3 tracked entries could not be delivered" in line
    assert "delivered now: tracking store http://127.0.0.1:9: Failed to establish" in line
    assert json.loads(call(folder, "--json").stdout) == []
    leave(folder, "b" * 32, entries=1, uri=None)
    assert waiting_runs(folder) == [
        WaitingRun("a" * 32, 3, "http://me:***@127.0.0.1:9"),
        WaitingRun("b" * 32, 1, folder.tracking_uri),
    ]


def test_many_waiting_runs_are_summed_up_and_without_any_it_says_how_to_begin(folder):
    assert "no runs yet" in call(folder).stderr
    for number in range(MAX_WAITING + 3):
        leave(folder, f"{number:032}")
    lines = call(folder).stderr.splitlines()
    assert len(lines) == MAX_WAITING + 1
    assert lines[-1] == "the same holds for 3 more runs"


def test_what_waited_for_a_store_that_is_back_is_delivered_and_listed(data_folder, dead_run):
    shown = call(data_folder)
    assert f"closed the run of a dead process: {dead_run.run_id}" in shown.stderr
    assert "could not be delivered" not in shown.stderr
    assert dead_run.run_id[:12] in shown.stdout


@pytest.fixture
def stopped(data_folder):
    """The id of a run that was stopped after step 20 and has a checkpoint."""
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("stopped"))
    data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    tracker.log_metrics(10, {"a": 1.0, "b": 2.0})
    tracker.log_metrics(20, {"a": 3.0})
    assert tracker.finish("KILLED").complete
    return tracker.run_id


def wait_until_all_has_arrived(tracker):
    sender = tracker._sender
    with sender._changed:
        assert sender._changed.wait_for(sender._is_done, 300.0)


def only_run(data_folder):
    (run,) = list_runs(data_folder)
    return run


def points(store, run_id, key):
    return [(point.step, point.value) for point in store.client.get_metric_history(run_id, key)]


def test_a_stopped_run_keeps_its_folder_and_costs_the_reaper_nothing(data_folder, stopped):
    folder = find_run_folder(data_folder, stopped)
    assert folder.owner.is_gone()
    assert not (folder.path / "reserve").exists()
    assert (close_orphan_runs(data_folder), waiting_runs(data_folder)) == ([], [])


@pytest.mark.parametrize(("status", "is_kept"), [("KILLED", False), ("FINISHED", True)])
def test_without_a_checkpoint_or_once_finished_nothing_is_kept(data_folder, status, is_kept):
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("x"))
    if is_kept:
        data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    tracker.finish(status)
    assert find_run_folder(data_folder, tracker.run_id) is None
    with pytest.raises(ConfigurationError, match="has no folder"):
        reopen_run(data_folder, tracker.run_id)


def test_it_runs_again_and_ends_anew_and_what_was_logged_before_is_logged_once(
    data_folder, stopped, store
):
    tracker = reopen_run(data_folder, stopped)
    assert tracker.run_id == stopped
    assert tracker.experiment_id == store.experiment_of(stopped)
    tracker.log_metrics(20, {"a": 3.0, "speed": 7.0})
    tracker.log_metrics(20, {"a": 3.5})
    tracker.log_metrics(30, {"a": 5.0})
    wait_until_all_has_arrived(tracker)
    running = only_run(data_folder)
    assert (running.status, running.ended, running.seconds) == ("RUNNING", None, None)
    assert running.tags[OWNER_TAG].endswith(find_run_folder(data_folder, stopped).owner.token)
    assert tracker.finish("FAILED").complete
    ended = only_run(data_folder)
    assert ended.status == "FAILED"
    assert ended.seconds is not None
    assert points(store, stopped, "a") == [(10, 1.0), (20, 3.0), (30, 5.0)]
    assert points(store, stopped, "b") == [(10, 2.0)]
    assert points(store, stopped, "speed") == [(20, 7.0)]


def test_a_file_that_grows_goes_on_from_any_place_that_it_had(data_folder, store):
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("grows"))
    data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    tracker.grow("a.csv", "1\n2\n3\n", place=0)
    tracker.sync()
    assert tracker.finish("KILLED").complete
    assert store.download(tracker.run_id, "a.csv").read_text() == "1\n2\n3\n"
    for text, whole in (("b\n", "1\nb\n"), ("c\n", "1\nc\n")):
        again = reopen_run(data_folder, tracker.run_id)
        wait_until_all_has_arrived(again)
        again.grow("a.csv", text, place=2)
        assert again.finish("FAILED").complete
        assert store.download(tracker.run_id, "a.csv").read_text() == whole


def test_the_run_of_a_dead_process_is_taken_over_before_or_after_it_is_closed(
    data_folder, dead_run, store
):
    dead_run.checkpoints.mkdir()
    for status, reaped in (("KILLED", False), ("FAILED", True)):
        if reaped:
            assert close_orphan_runs(data_folder) == []
        tracker = reopen_run(data_folder, dead_run.run_id)
        tracker.log_metrics(10, {"a": 1.0})
        assert tracker.finish(status).complete
        assert only_run(data_folder).status == status
    assert points(store, dead_run.run_id, "a") == [(10, 1.0)]


def test_a_process_that_dies_again_leaves_a_run_to_be_closed_again(data_folder, stopped):
    tracker = reopen_run(data_folder, stopped)
    tracker.log_metrics(30, {"a": 4.0})
    tracker._sender.finish(20.0)
    tracker._journal.close()
    tracker._folder.hold.release()
    assert close_orphan_runs(data_folder) == [stopped]
    assert only_run(data_folder).status == "KILLED"
    assert find_run_folder(data_folder, stopped).checkpoints.is_dir()
    assert close_orphan_runs(data_folder) == []


def test_a_run_that_the_store_has_deleted_is_refused_and_stays_as_it_is(
    data_folder, stopped, store
):
    store.discard_run(stopped)
    before = find_run_folder(data_folder, stopped)
    with pytest.raises(StoreError, match="is deleted in"):
        reopen_run(data_folder, stopped)
    assert find_run_folder(data_folder, stopped) == before
    assert (before.path / "settled").exists()


def test_a_disk_without_room_leaves_the_run_to_others(data_folder, stopped, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "replace_file", full)
        with pytest.raises(StoreError, match="No space left on device"):
            reopen_run(data_folder, stopped)
    assert find_run_folder(data_folder, stopped).owner.is_gone()
    assert close_orphan_runs(data_folder) == []
    assert only_run(data_folder).status == "KILLED"
    assert reopen_run(data_folder, stopped).finish("FAILED").complete


def test_a_journal_goes_on_after_its_end_only_by_a_resumption(tmp_path):
    journal = Journal(tmp_path)
    entries = [MetricsEntry(1, 1, {"a": 1.0}), EndEntry("KILLED", 2), ResumeEntry(4)]
    entries.append(MetricsEntry(2, 5, {"b": 1.0}))
    for entry in entries[:2]:
        journal.append(entry)
    with pytest.raises(RuntimeError, match="has ended"):
        journal.append(entries[3])
    for entry in entries[2:]:
        journal.append(entry)
        assert journal.ending is None
    journal.close()
    again = Journal(tmp_path)
    assert again.ending is None
    assert again.metrics() == {1: {"a"}, 2: {"b"}}
    kept = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert [decode(line) for line in kept] == entries

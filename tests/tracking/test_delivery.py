"""Entries reach the store: kept in a journal, sent in order; what it refuses is said and kept."""

import os
import shutil
import sys
import threading
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from fake_store import FakeStore
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository
from owned_runs import leave_folder

from aimbot_lab.cli.commands.runs import runs
from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import journal as journal_module
from aimbot_lab.tracking import mlflow_store
from aimbot_lab.tracking.data_folder import (
    FilesHeldError,
    NoArtifactError,
    StoreRefusedError,
    TrackingAddress,
    file_error,
)
from aimbot_lab.tracking.history import close_orphan_runs
from aimbot_lab.tracking.journal import (
    EndEntry,
    FileEntry,
    Journal,
    MetricsEntry,
    TagsEntry,
    count_waiting,
    decode,
    deliver_batch,
    encode,
)
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import OWNER_TAG, this_process
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import Outage


def entry(step):
    return MetricsEntry(step, 1000 + step, {"a/b": step / 3})


@pytest.mark.parametrize(
    "original",
    [
        entry(7),
        TagsEntry({"größe": "日本\nzeile"}),
        FileEntry("files/x/a.txt", "notes"),
        EndEntry("KILLED", 5),
    ],
)
def test_an_entry_reads_back_as_it_was(original):
    line = encode(original)
    assert decode(line) == original
    assert line.count(b"\n") == 1


@pytest.mark.parametrize("torn_bytes", [1, len(encode(entry(1))) - 1])
def test_a_torn_last_line_is_cut_off_and_an_unreadable_one_counted_and_skipped(
    tmp_path, torn_bytes
):
    unreadable = b'{"kind": "?"}\n\xff\n'
    torn = encode(entry(1))[:torn_bytes]
    (tmp_path / "journal.jsonl").write_bytes(encode(entry(0)) + unreadable + torn)
    again = Journal(tmp_path)
    again.append(entry(2))
    pending = Journal(tmp_path).pending(10)
    assert pending.entries == [entry(0), entry(2)]
    assert pending.unreadable == 2


def test_delivery_goes_on_from_where_it_was(tmp_path):
    journal = Journal(tmp_path)
    for step in range(5):
        journal.append(entry(step))
    journal.mark_delivered(journal.pending(2))
    again = Journal(tmp_path)
    assert journal.waiting == again.waiting == count_waiting(tmp_path) - 1 == 3
    assert again.pending(2).entries == [entry(2), entry(3)]
    again.mark_delivered(again.pending(10))
    assert again.is_delivered
    assert again.waiting == 0
    for step, damaged in enumerate((b"nonsense", b"999999"), 5):
        (tmp_path / "delivered").write_bytes(damaged)
        again = Journal(tmp_path)
        again.append(entry(step))
        assert entry(step) in again.pending(10).entries


def test_an_entry_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    journal = Journal(tmp_path)
    path = tmp_path / "journal.jsonl"
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(path.stat().st_size), real(fd)))
    journal.append(entry(0))
    assert synced == [len(encode(entry(0)))]


def test_a_line_that_a_full_disk_tore_is_never_delivered(tmp_path, monkeypatch):
    journal = Journal(tmp_path)

    def half_then_full(descriptor, data):
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def refused(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "append_whole", half_then_full)
        patch.setattr(os, "ftruncate", refused)
        for step in range(2):
            with pytest.raises(StoreError):
                journal.append(entry(step))
    assert journal.is_delivered
    journal.append(entry(2))
    assert journal.pending(10).entries == Journal(tmp_path).pending(10).entries == [entry(2)]


def test_a_journal_whose_folder_is_gone_is_still_delivered_and_once_closed_refuses_in_a_line(
    tmp_path,
):
    (tmp_path / "run").mkdir()
    journal = Journal(tmp_path / "run")
    journal.append(entry(0))
    shutil.rmtree(tmp_path / "run")
    journal.append(entry(1))
    pending = journal.pending(10)
    assert pending.entries == [entry(0), entry(1)]
    journal.mark_delivered(pending)
    assert journal.is_delivered
    journal.close()
    for call in (lambda: journal.pending(1), lambda: journal.append(entry(1))):
        with pytest.raises(StoreError, match="Bad file descriptor") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_counting_what_waits_needs_no_journal_and_changes_none(tmp_path):
    assert count_waiting(tmp_path) == 1  # the end of the run
    line = encode(entry(0))
    (tmp_path / "journal.jsonl").write_bytes(line + encode(EndEntry("KILLED", 5)) + b"torn")
    assert count_waiting(tmp_path) == 2
    (tmp_path / "delivered").write_text(str(len(line)))
    before = (tmp_path / "journal.jsonl").read_bytes()
    assert count_waiting(tmp_path) == 1
    assert (tmp_path / "journal.jsonl").read_bytes() == before


def test_everything_arrives_in_order_and_small_helpings_after_the_store_was_down(begin):
    told, sizes, store = [], [], FakeStore(outages=5)
    send = store.send
    store.send = lambda entries: (sizes.append(len(entries)), send(entries))
    store.open.clear()
    tracker = begin(store, told.append)
    for step in range(200):
        tracker.log_metrics(step, {"x": step})
    store.open.set()
    report = tracker.finish("FINISHED")
    assert report.complete
    assert report.failure is None
    assert store.steps == list(range(200))
    assert store.received[-1].status == "FINISHED"
    assert told == [DOWN, WORKS]
    assert max(sizes) <= 64


def test_logging_never_touches_the_store_on_the_callers_thread(begin):
    store = FakeStore()
    store.open.clear()
    tracker = begin(store)
    for step in range(10):
        tracker.log_metrics(step, {"x": 1.0})
        tracker.set_tags({"a": "b"})
        tracker.log_text("text", "a.txt")
    assert store.received == []
    store.open.set()
    assert tracker.finish("FINISHED").complete
    assert threading.get_ident() not in store.threads


def test_a_refused_entry_is_said_when_it_happens_and_takes_no_neighbours_with_it(begin):
    told, store = [], FakeStore(refused_steps={3, 40})
    tracker = begin(store, told.append)
    for step in range(50):
        tracker.log_metrics(step, {"x": 1.0})
    report = tracker.finish("FINISHED")
    assert (report.refused, report.waiting, report.complete) == (2, 0, False)
    assert "refused" in report.failure
    assert store.steps == [step for step in range(50) if step not in {3, 40}]
    (line,) = [one for one in told if not one.startswith("waiting")]  # as a slow machine does
    assert line.startswith("this step is refused; ")


def test_what_could_not_be_delivered_waits_and_is_reported(begin, tmp_path):
    store = FakeStore(outages=1_000_000)
    tracker = begin(store)
    for step in range(7):
        tracker.log_metrics(step, {"x": 1.0})
    report = tracker.finish("FAILED", wait_seconds=0.01)
    assert (report.status, report.waiting, report.failure) == ("FAILED", 8, "the store is down")
    store.outages = 0
    journal = Journal(tmp_path / "run")
    while not journal.is_delivered:
        deliver_batch(journal, store, refuse=pytest.fail)
    assert store.steps == list(range(7))
    assert store.received[-1].status == "FAILED"


DOWN = "the store is down; the training continues; what it tracks waits on this machine"
WORKS = "the tracking store works again; all that waited has arrived"


def test_a_store_that_hangs_is_told_before_it_fails(begin, monkeypatch):
    monkeypatch.setattr(journal_module, "SLOW", 0.0)
    told, store = [], FakeStore()
    store.open.clear()
    tracker = begin(store, told.append)
    tracker.log_metrics(0, {"x": 1.0})
    assert store.asked.wait(300)
    for step in (1, 2):
        tracker.log_metrics(step, {"x": 1.0})
    store.open.set()
    assert tracker.finish("FINISHED").complete
    slow = "nothing has reached the tracking store for 0 s"
    assert told == [DOWN.replace("the store is down", slow), WORKS]


def test_the_last_wait_says_what_it_waits_for(begin, monkeypatch):
    monkeypatch.setattr(journal_module, "PATIENCE", 0.01)
    told = []
    tracker = begin(FakeStore(outages=1_000_000), told.append)
    tracker.log_metrics(0, {"x": 1.0})
    report = tracker.finish("FINISHED", wait_seconds=0.6)
    assert report.waiting == 2
    (waiting,) = [text for text in told if text.startswith("waiting")]
    said = "waiting at most 1 s until the tracking store has 2 more"
    assert waiting in (said, f"{said} (the store is down)")


def test_after_the_end_nothing_is_told(begin):
    told, store = [], FakeStore(outages=1)
    store.open.clear()
    tracker = begin(store, told.append)
    tracker.log_metrics(0, {"x": 1.0})
    tracker.finish("FINISHED", wait_seconds=0.01)
    store.open.set()
    tracker._sender._thread.join()
    assert told == []


def test_a_trouble_is_told_once_however_often_it_shows():
    told = []
    failure = Outage(told.append)
    failure.end("never began")
    for _ in range(3):
        failure.begin("broken", consequence="so what")
    assert failure.reason == "broken"
    for _ in range(3):
        failure.end("mended")
    assert failure.reason is None
    failure.begin("broken again", consequence="so what")
    assert told == ["broken; so what", "mended", "broken again; so what"]


@pytest.fixture
def tracker(data_folder, store):
    """A run that has sent a number, and what it was told."""
    told, settings = [], TrackingSettings(experiment="x")
    opened = open_run(data_folder, settings, RunDescription("n"), on_outage=told.append)
    return SimpleNamespace(run=opened, told=told)


@pytest.mark.parametrize("what", ["run", "experiment"])
def test_a_run_deleted_while_it_trains_is_said_kept_and_delivered_once_restored(
    data_folder, store, tracker, what
):
    number = getattr(tracker.run, f"{what}_id")
    command = f"mlflow {what}s restore --{what}-id {number}"
    tracker.run.log_metrics(1, {"a": 1.0})
    getattr(store.client, f"delete_{what}")(number)
    tracker.run.log_metrics(2, {"a": 2.0})
    tracker.run.log_text("x", "a.txt")
    while not tracker.told:  # until the sender has met it
        tracker.run.set_tags({"b": "c"})
    report = tracker.run.finish("FINISHED", wait_seconds=0.2)
    assert (report.refused, report.complete) == (0, False)
    assert report.waiting >= 2
    (line,) = [line for line in tracker.told if "waiting" not in line]
    assert f"{what} " in line
    assert command in line
    again = CliRunner().invoke(runs, ["--data-dir", str(data_folder.root)])
    assert f"{report.waiting} tracked" in again.stderr
    assert command in again.stderr
    getattr(store.client, f"restore_{what}")(number)
    close_orphan_runs(data_folder)
    run = store.client.get_run(tracker.run.run_id)
    history = store.client.get_metric_history(tracker.run.run_id, "a")
    assert [point.value for point in history] == [1.0, 2.0]
    assert run.info.status == "FINISHED"
    assert store.download(tracker.run.run_id, "a.txt").read_text() == "x"
    assert list(data_folder.runs.iterdir()) == []


def test_a_run_restored_while_it_trains_goes_on_as_if_nothing_had_been(store, tracker):
    store.client.delete_run(tracker.run.run_id)
    tracker.run.log_metrics(1, {"a": 1.0})
    while not tracker.told:  # until the sender has met it
        tracker.run.log_metrics(1, {"a": 1.0})
    store.client.restore_run(tracker.run.run_id)
    assert tracker.run.finish("FINISHED").complete
    assert store.client.get_run(tracker.run.run_id).info.status == "FINISHED"
    assert "works again" in tracker.told[-1]


def test_a_store_without_the_run_keeps_it_waiting_and_others_are_delivered(
    data_folder, store, dead_run
):
    owner = this_process("another", None)
    stranger = leave_folder(data_folder, owner).named("0" * 32)  # before the other by its name
    journal = Journal(stranger.path)
    journal.append(MetricsEntry(1, 1000, {"a": 1.0}))
    journal.close()
    faults = {}
    closed = close_orphan_runs(data_folder, on_fault=faults.__setitem__)
    assert closed == [dead_run.run_id]
    assert "0" * 32 in faults["0" * 32]
    assert count_waiting(stranger.path) == 2
    assert OWNER_TAG in store.client.get_run(dead_run.run_id).data.tags


class FilelessStore(FakeStore):
    """A store that takes no files while `closed`, and never those whose names it `refuses`."""

    def __init__(self, refuses=()):
        super().__init__()
        self.closed, self.refuses, self.tried = True, refuses, 0

    def send(self, entries):
        files = [entry for entry in entries if isinstance(entry, FileEntry)]
        self.tried += len(files)
        if any(entry.kept.endswith(name) for entry in files for name in self.refuses):
            raise StoreRefusedError("too large")
        if files and self.closed:
            raise FilesHeldError("no room for files")
        super().send(entries)

    @property
    def files(self):
        return [one.kept.split("/")[-1] for one in self.received if isinstance(one, FileEntry)]


def test_numbers_and_the_end_do_not_wait_for_files(begin, tmp_path):
    told, store = [], FilelessStore()
    tracker = begin(store, told.append)
    for step in range(200):
        tracker.log_metrics(step, {"x": 1.0})
        if step % 50 == 0:
            tracker.log_text("x", f"{step}.txt")
    report = tracker.finish("FINISHED")  # does not wait in vain
    assert store.steps == list(range(200))
    assert store.received[-1].status == "FINISHED"
    assert (report.waiting, report.refused, report.failure) == (4, 0, "no room for files")
    assert any(one.startswith("no room for files; the run's files wait") for one in told)
    assert count_waiting(tmp_path / "run") == 4
    journal = Journal(tmp_path / "run")
    assert (journal.entries_wait, journal.files_wait, journal.waiting) == (False, True, 4)
    store.closed = False
    deliver_batch(journal, store, refuse=pytest.fail)
    assert journal.is_delivered
    assert store.files == ["0.txt", "50.txt", "100.txt", "150.txt"]
    assert store.steps == list(range(200))


def test_files_that_are_taken_again_arrive_while_the_run_goes_on(begin):
    told, store = [], FilelessStore()
    tracker = begin(store, told.append)
    tracker.log_text("x", "a.txt")
    tracker.log_metrics(0, {"x": 1.0})
    while store.tried < 3:
        tracker.log_metrics(0, {"x": 1.0})
    store.closed = False
    assert tracker.finish("FINISHED").complete
    assert store.files == ["a.txt"]
    assert told[-1] == "files are stored again; those that waited have arrived"


def test_a_file_that_is_refused_holds_no_other_back(begin, tmp_path):
    store = FilelessStore(refuses=["large.bin"])
    store.closed = False
    tracker = begin(store)
    for name in ("large.bin", "a.txt", "b.txt"):
        tracker.log_text("x", name)
    tracker.log_metrics(0, {"x": 1.0})
    report = tracker.finish("FINISHED")
    assert sorted(store.files) == ["a.txt", "b.txt"]
    assert (report.waiting, report.failure) == (1, "too large")
    assert count_waiting(tmp_path / "run") == 1


def test_an_older_versions_note_of_delivery_holds_no_files(tmp_path):
    journal = Journal(tmp_path)
    journal.append(FileEntry(journal.files.keep_text("x", "a.txt"), ""))
    journal.append(TagsEntry({"a": "b"}))
    journal.append(EndEntry("FINISHED", 1))
    (tmp_path / "delivered").write_bytes(str((tmp_path / "journal.jsonl").stat().st_size).encode())
    assert count_waiting(tmp_path) == 0
    assert Journal(tmp_path).is_delivered


def test_files_for_which_a_package_is_missing_hold_back_nothing_and_name_it(
    data_folder, store, monkeypatch, tmp_path
):
    for name in ["boto3", *(one for one in sys.modules if one.startswith("boto3."))]:
        monkeypatch.setitem(sys.modules, name, None)
    store.client.create_experiment("far", artifact_location="s3://none/x")
    told, settings = [], TrackingSettings(experiment="far")
    tracker = open_run(data_folder, settings, RunDescription("n"), on_outage=told.append)
    tracker.log_text("x", "a.txt")
    tracker.log_metrics(1, {"a": 1.0})
    report = tracker.finish("FAILED")
    assert any("; pip install boto3; " in one for one in told)  # a slow import is told first
    run = store.client.get_run(tracker.run_id)
    assert (run.info.status, run.data.metrics) == ("FAILED", {"a": 1.0})
    assert report.waiting == 1
    with pytest.raises(StoreError, match="pip install boto3"):
        store.download(tracker.run_id, "a.txt")
    there = tmp_path / "there" / tracker.run_id / "artifacts"
    repository = LocalArtifactRepository(there.as_uri())
    monkeypatch.setattr(mlflow_store, "get_artifact_repository", lambda *_, **__: repository)
    close_orphan_runs(data_folder)
    assert (there / "a.txt").read_text() == "x"
    assert list(data_folder.runs.iterdir()) == []


class AnsweredError(Exception):
    """As requests raises it."""

    def __init__(self, status):
        super().__init__(f"{status} Client Error")
        self.response = SimpleNamespace(status_code=status)


def test_what_a_file_meets_says_what_waits_for_it():
    served, address = "mlflow-artifacts:/1/r/artifacts", TrackingAddress("http://x", embedded=False)
    for place, error, kind in (
        (served, ConnectionError("refused"), StoreError),
        (served, AnsweredError(413), StoreRefusedError),
        (served, AnsweredError(503), FilesHeldError),
        ("s3://none/x", ConnectionError("refused"), FilesHeldError),
        ("file:///x", OSError("No such artifact: 'a'"), NoArtifactError),
    ):
        assert type(file_error(error, address, place)) is kind

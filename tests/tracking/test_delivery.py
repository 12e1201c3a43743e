"""Entries reach the store: kept in a journal, sent in order, reported where the store is gone."""

import os
import shutil
import threading

import pytest
from fake_store import FakeStore

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import journal as journal_module
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


def test_a_refused_entry_does_not_take_its_neighbours_with_it(begin):
    store = FakeStore(refused_steps={3, 40})
    tracker = begin(store)
    for step in range(50):
        tracker.log_metrics(step, {"x": 1.0})
    report = tracker.finish("FINISHED")
    assert (report.refused, report.waiting, report.complete) == (2, 0, False)
    assert "refused" in report.failure
    assert store.steps == [step for step in range(50) if step not in {3, 40}]


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

import threading

import pytest
from fake_store import FakeStore

from aimbot_lab.tracking.journal import Journal
from aimbot_lab.tracking.run_folder import left_over_folders
from aimbot_lab.tracking.sender import deliver_batch


def test_everything_arrives_in_order_after_the_store_was_down(begin):
    store = FakeStore(outages=5)
    tracker = begin(store)
    for step in range(150):
        tracker.log_metrics(step, {"x": step})
    report = tracker.finish("FINISHED")
    assert report.complete
    assert report.failure is None
    assert store.steps == list(range(150))
    assert store.received[-1].status == "FINISHED"


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
    assert report.status == "FAILED"
    assert report.waiting == 8
    assert report.failure == "the store is down"
    store.outages = 0
    journal = Journal(tmp_path / "run")
    while not journal.is_delivered:
        deliver_batch(journal, store, refuse=pytest.fail)
    assert store.steps == list(range(7))
    assert store.received[-1].status == "FAILED"


def test_a_run_that_could_not_be_delivered_is_left_for_others(begin, tmp_path, data_folder):
    tracker = begin(FakeStore(outages=1_000_000))
    tracker.finish("FINISHED", wait_seconds=0.01)
    (tmp_path / "run").rename(data_folder.run_folder("run"))
    assert [folder.run_id for folder in left_over_folders(data_folder)] == ["run"]


def test_a_delivered_run_leaves_no_folder(begin, tmp_path):
    tracker = begin(FakeStore())
    tracker.log_text("x", "a.txt")
    assert tracker.finish("FINISHED").complete
    assert list(tmp_path.iterdir()) == []


def test_finishing_again_reports_the_first_status(begin):
    tracker = begin(FakeStore())
    assert tracker.finish("KILLED") == tracker.finish("FINISHED")


def test_a_long_backlog_is_sent_in_small_helpings(begin):
    sizes = []
    store = FakeStore(outages=1)
    send = store.send
    store.send = lambda entries: (sizes.append(len(entries)), send(entries))
    store.open.clear()
    tracker = begin(store)
    for step in range(200):
        tracker.log_metrics(step, {"x": 1.0})
    store.open.set()
    assert tracker.finish("FINISHED").complete
    assert max(sizes) <= 64


def test_an_upload_that_succeeded_frees_its_copy(tmp_path):
    journal = Journal(tmp_path)
    kept = journal.files.keep_text("x", "a.txt")
    assert journal.files.path(kept).read_text() == "x"
    journal.files.drop(kept)
    assert not journal.files.path(kept).exists()

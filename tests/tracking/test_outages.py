"""A store that goes and comes back is told in a line each, and so is what the end waits for."""

from fake_store import FakeStore

from aimbot_lab.tracking import sender
from aimbot_lab.tracking.tracker import Outage

DOWN = "the store is down; the training goes on; what it tracks waits on this machine"
WORKS = "the tracking store works again; all that waited has arrived"


def test_an_outage_is_told_when_it_begins_and_when_it_is_over(begin):
    told, store = [], FakeStore(outages=5)
    tracker = begin(store, told.append)
    for step in range(100):
        tracker.log_metrics(step, {"x": 1.0})
    assert tracker.finish("FINISHED").complete
    assert told == [DOWN, WORKS]


def test_a_store_that_hangs_is_told_before_it_fails(begin, monkeypatch):
    monkeypatch.setattr(sender, "SLOW", 0.0)
    told, store = [], FakeStore()
    store.open.clear()
    tracker = begin(store, told.append)
    tracker.log_metrics(0, {"x": 1.0})
    assert store.asked.wait(30)
    for step in (1, 2):
        tracker.log_metrics(step, {"x": 1.0})
    store.open.set()
    assert tracker.finish("FINISHED").complete
    slow = "nothing has reached the tracking store for 0 s"
    assert told == [DOWN.replace("the store is down", slow), WORKS]


def test_a_store_that_works_is_not_talked_about(begin):
    told = []
    tracker = begin(FakeStore(), told.append)
    tracker.log_metrics(0, {"x": 1.0})
    tracker.finish("FINISHED")
    assert told == []


def test_the_last_wait_says_what_it_waits_for(begin, monkeypatch):
    monkeypatch.setattr(sender, "PATIENCE", 0.01)
    told = []
    tracker = begin(FakeStore(outages=1_000_000), told.append)
    tracker.log_metrics(0, {"x": 1.0})
    report = tracker.finish("FINISHED", wait_seconds=0.6)
    assert report.waiting == 2
    waiting = [text for text in told if text.startswith("waiting")]
    assert waiting in (
        ["waiting at most 1 s until the tracking store has 2 more"],
        ["waiting at most 1 s until the tracking store has 2 more (the store is down)"],
    )


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

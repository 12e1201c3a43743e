"""Who was taken over writes nothing any more."""

import os

import pytest
from dead_runs import let_lease_end
from fake_store import FakeStore
from owned_runs import begun, journal_of, seen_from

from aimbot_lab.foundation.errors import RunLostError
from aimbot_lab.tracking import ownership
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal_tracker import RunAddress, start_tracker
from aimbot_lab.tracking.opening import claim_run, reopen_run
from aimbot_lab.tracking.ownership import read_owner, this_process
from aimbot_lab.tracking.run_folder import (
    create_run_folder,
)


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

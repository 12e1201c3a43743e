"""A run that goes on is the same run: in its store, in its journal, each number once."""

import pytest

from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import journal
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal import EndEntry, Journal, MetricsEntry, ResumeEntry, decode
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run, reopen_run
from aimbot_lab.tracking.run_folder import OWNER_TAG, find_run_folder, waiting_runs
from aimbot_lab.tracking.settings import TrackingSettings


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

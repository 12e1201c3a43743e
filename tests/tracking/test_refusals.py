"""What a store refuses is said and kept: a deleted run's all, and files that can't be stored."""

import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from dead_runs import leave_folder
from fake_store import FakeStore
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from aimbot_lab.cli.commands.runs import runs
from aimbot_lab.foundation.errors import StoreError
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
    deliver_batch,
)
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import OWNER_TAG, this_process
from aimbot_lab.tracking.settings import TrackingSettings


@pytest.fixture
def tracker(data_folder, store):
    """A run that has sent a number, and what it was told."""
    told, settings = [], TrackingSettings(experiment="x")
    opened = open_run(data_folder, settings, RunDescription("n"), on_outage=told.append)
    return SimpleNamespace(run=opened, told=told)


def deletions(store, tracker):
    client, run = store.client, tracker.run
    runs = (client.delete_run, client.restore_run, run.run_id, "runs restore --run-id")
    experiments = (client.delete_experiment, client.restore_experiment, run.experiment_id)
    return {"run": runs, "experiment": (*experiments, "experiments restore --experiment-id")}


@pytest.mark.parametrize("what", ["run", "experiment"])
def test_a_run_deleted_while_it_trains_is_said_kept_and_delivered_once_restored(
    data_folder, store, tracker, what
):
    delete, restore, number, command = deletions(store, tracker)[what]
    tracker.run.log_metrics(1, {"a": 1.0})
    delete(number)
    tracker.run.log_metrics(2, {"a": 2.0})
    tracker.run.log_text("x", "a.txt")
    report = tracker.run.finish("FINISHED", wait_seconds=0.2)
    assert (report.refused, report.complete) == (0, False)
    assert report.waiting >= 2
    (line,) = [line for line in tracker.told if "waiting" not in line]
    assert f"{what} " in line
    assert f"mlflow {command} {number}" in line
    again = CliRunner().invoke(runs, ["--data-dir", str(data_folder.root)])
    assert f"{report.waiting} tracked" in again.stderr
    assert f"mlflow {command} {number}" in again.stderr
    restore(number)
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


def test_a_refused_number_is_said_when_it_happens(begin):
    told = []
    tracker = begin(FakeStore(refused_steps={3, 4}), told.append)
    for step in range(9):
        tracker.log_metrics(step, {"x": 1.0})
    assert tracker.finish("FINISHED").refused == 2
    told = [one for one in told if not one.startswith("waiting")]  # as a slow machine does
    assert told == ["this step is refused; " + told[0].partition("; ")[2]]


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


@pytest.mark.parametrize(
    ("place", "error", "kind"),
    [
        ("mlflow-artifacts:/1/r/artifacts", ConnectionError("refused"), StoreError),
        ("mlflow-artifacts:/1/r/artifacts", AnsweredError(413), StoreRefusedError),
        ("mlflow-artifacts:/1/r/artifacts", AnsweredError(503), FilesHeldError),
        ("s3://none/x", ConnectionError("refused"), FilesHeldError),
        ("file:///x", OSError("No such artifact: 'a'"), NoArtifactError),
    ],
)
def test_what_a_file_meets_says_what_waits_for_it(place, error, kind):
    assert type(file_error(error, TrackingAddress("http://x", embedded=False), place)) is kind

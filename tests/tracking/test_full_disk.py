"""A disk that fills up under a run costs entries, never the run or its agent."""

import errno

import pytest
from fake_store import FakeStore, FullDisk

from aimbot_lab.experiment.runs.agents import log_agents
from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import journal
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal import (
    RESERVED_BYTES,
    EndEntry,
    FileEntry,
    Journal,
    MetricsEntry,
    TagsEntry,
)
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import RunFolder
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import NOTE_TAG, MemoryTracker, never_raising


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """A disk that is not full yet and whose reserve helps."""
    return FullDisk(monkeypatch, reserve=tmp_path / "run" / "reserve")


@pytest.fixture
def dead_disk(monkeypatch):
    """A disk that is not dead yet; then it takes nothing at all."""
    return FullDisk(monkeypatch)


def of_kind(store, kind):
    return [entry for entry in store.received if isinstance(entry, kind)]


def test_what_the_disk_refuses_is_counted_and_told_once(begin, disk):
    told, store = [], FakeStore()
    tracker = begin(store, told.append)
    tracker.log_metrics(0, {"x": 1.0})
    disk.full = True
    for step in range(1, 6):
        tracker.log_metrics(step, {"x": 1.0})
    assert not tracker.log_text("text", "a.txt")
    assert len(told) == 1
    assert "No space left on device" in told[0]
    assert "the training continues" in told[0]
    disk.full = False
    tracker.log_metrics(6, {"x": 1.0})
    assert told[1:] == ["what is tracked is kept again; lost in between: 6 entries"]
    report = tracker.finish("FINISHED")
    assert (report.dropped, report.waiting, report.complete) == (6, 0, False)
    assert "No space left on device" in report.failure
    assert store.steps == [0, 6]


def test_the_end_and_the_last_tags_have_room_of_their_own(begin, disk):
    store = FakeStore()
    tracker = begin(store)
    disk.full = True
    tracker.set_tags({"lab.outcome": "first", "lab.seed": "7"})
    tracker.set_note("ü" * 8000)
    tracker.set_tags({"lab.outcome": "second"})
    report = tracker.finish("FAILED")
    assert (report.status, report.dropped, report.waiting) == ("FAILED", 0, 0)
    assert store.received[-1].status == "FAILED"
    (tags,) = of_kind(store, TagsEntry)
    assert tags.tags == {"lab.outcome": "second", "lab.seed": "7", NOTE_TAG: "ü" * 8000}


def test_the_end_waits_on_a_full_disk_for_a_store_that_is_down(begin, disk, tmp_path):
    tracker = begin(FakeStore(outages=1_000_000))
    assert (tmp_path / "run" / "reserve").stat().st_size == RESERVED_BYTES > 2 * 6 * 8000
    disk.full = True
    tracker.set_tags({"lab.outcome": "done"})
    report = tracker.finish("FAILED", wait_seconds=0.01)
    assert (report.waiting, report.dropped) == (2, 0)
    journal = Journal(tmp_path / "run")
    assert journal.ending.status == "FAILED"
    assert journal.pending(1).entries == [TagsEntry({"lab.outcome": "done"})]


def test_older_tags_never_win_over_newer_ones(begin, disk):
    store = FakeStore()
    tracker = begin(store)
    disk.full = True
    tracker.set_tags({"a": "old", "b": "only"})
    disk.full = False
    tracker.set_tags({"a": "new"})
    assert tracker.finish("FINISHED").complete
    assert [entry.tags for entry in of_kind(store, TagsEntry)] == [{"a": "new", "b": "only"}]


def test_a_run_is_closed_even_where_the_disk_takes_nothing(begin, dead_disk, tmp_path):
    store = FakeStore(outages=3)
    tracker = begin(store)
    tracker.log_metrics(0, {"x": 1.0})
    dead_disk.full = True
    tracker.set_tags({"lab.outcome": "done"})
    report = tracker.finish("FINISHED")
    assert (report.status, report.dropped, report.waiting) == ("FINISHED", 0, 0)
    assert [type(entry) for entry in store.received] == [MetricsEntry, TagsEntry, EndEntry]
    assert list(tmp_path.iterdir()) == []


def test_what_neither_disk_nor_store_takes_is_reported(begin, dead_disk):
    tracker = begin(FakeStore(outages=1_000_000))
    dead_disk.full = True
    tracker.set_tags({"lab.outcome": "done"})
    report = tracker.finish("FAILED", wait_seconds=0.01)
    assert (report.status, report.dropped, report.waiting) == ("FAILED", 2, 0)
    assert "No space left on device" in report.failure
    assert "the store is down" in report.failure


def test_a_file_that_or_whose_entry_found_no_room_leaves_nothing_behind(
    begin, disk, tmp_path, monkeypatch
):
    store = FakeStore()
    tracker = begin(store)
    source = tmp_path / "agent.bin"
    source.write_bytes(bytes(1000))
    disk.full = True
    with monkeypatch.context() as patch:
        assert not tracker.log_file(source)
        patch.setattr("aimbot_lab.tracking.journal.sync_file", lambda _: None)
        assert not tracker.log_text("text", "a.txt")  # whose entry finds none
    assert list((tmp_path / "run" / "files").iterdir()) == []
    disk.full = False
    assert tracker.log_file(source)
    tracker.finish("FINISHED")
    assert len(of_kind(store, FileEntry)) == 1


def test_a_run_folder_that_someone_deleted_is_not_made_anew(begin, tmp_path):
    store = FakeStore()
    tracker = begin(store)
    RunFolder(tmp_path / "run", None).remove()
    assert not tracker.log_text("text", "a.txt")
    tracker.log_metrics(0, {"x": 1.0})
    report = tracker.finish("FINISHED")
    assert (report.dropped, report.waiting) == (1, 0)
    assert store.received[-1].status == "FINISHED"
    assert list(tmp_path.iterdir()) == []


def test_a_listener_that_fails_stops_nothing(begin, disk):
    def deaf(_):
        raise BrokenPipeError

    tracker = begin(FakeStore(outages=2), never_raising(deaf))
    disk.full = True
    tracker.log_metrics(0, {"x": 1.0})
    assert tracker.finish("FINISHED").dropped == 1


def test_a_disk_without_room_for_the_end_is_told_before_the_run_begins(data_folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "replace_file", full)
    with pytest.raises(StoreError, match="No space left on device"):
        open_run(data_folder, TrackingSettings(), RunDescription("full"))
    assert list_runs(data_folder) == []
    assert list(data_folder.runs.iterdir()) == []


def test_a_dead_run_is_closed_on_a_full_disk(data_folder, dead_run, monkeypatch):
    FullDisk(monkeypatch).full = True
    assert close_orphan_runs(data_folder) == [dead_run.run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]


NAME = "aimbot-lab-agent-memory"


class FakeTraining:
    """Saves two agents of one file each, except below the folders that are `full`."""

    self_play = None

    def __init__(self, *full):
        self.full = full

    def save_agents(self, folder):
        saved = {}
        for which in ("last", "best"):
            path = folder / which / "agent.bin"
            path.parent.mkdir(parents=True)
            path.write_text(which)
            saved[which] = (path,)
        if any(folder.is_relative_to(full) for full in self.full):
            raise OSError(errno.ENOSPC, "no room")
        return saved


class FullTracker(MemoryTracker):
    """A tracker whose disk takes `room` files."""

    room = 0

    def log_file(self, path, folder=""):
        self.room -= 1
        return self.room >= 0 and super().log_file(path, folder)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The data folder, the working directory and the folder for temporary files."""
    made = [tmp_path / name for name in ("data", "here", "temporary")]
    for place in made:
        place.mkdir()
    monkeypatch.chdir(made[1])
    monkeypatch.setattr("tempfile.tempdir", str(made[2]))
    return made


def files(*places):
    return [path for place in places for path in place.rglob("*") if path.is_file()]


def test_agents_go_to_the_run_and_nowhere_else(places):
    for full in ((), places[2:]):  # temporary files need no room of their own
        tracker, folder = MemoryTracker(), DataFolder(places[0])
        assert log_agents(FakeTraining(*full), tracker, data_folder=folder) is None
        kept = {"agent/last/agent.bin": b"last", "agent/best/agent.bin": b"best"}
        assert tracker.artifacts == kept
        assert files(*places) == []


@pytest.mark.parametrize(
    ("folder", "room", "full", "rescued"),
    [("data", 1, [], "here"), ("gone", 0, [], "here"), ("data", 0, ["data", "here"], "temporary")],
)
def test_without_room_in_the_run_they_go_to_the_working_directory_or_where_temporary_files_go(
    places, tmp_path, folder, room, full, rescued
):
    tracker, data_folder = FullTracker(), DataFolder(tmp_path / folder)
    tracker.room = room
    training = FakeTraining(*(tmp_path / name for name in full))
    found = log_agents(training, tracker, data_folder=data_folder)
    assert found == tmp_path / rescued / NAME
    assert (found / "best" / "agent.bin").read_text() == "best"
    assert files(*(place for place in places if place.name != rescued)) == []


def test_an_agent_that_fits_nowhere_is_told(places, tmp_path):
    with pytest.raises(StoreError, match="agent of run memory is lost"):
        log_agents(FakeTraining(tmp_path), MemoryTracker(), data_folder=DataFolder(places[0]))
    assert files(*places) == []

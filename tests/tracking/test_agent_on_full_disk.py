"""An agent that tracking has no room for is saved beside it."""

import pytest

from aimbot_lab.experiment.runs.agents import log_agents
from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import MemoryTracker

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
            raise RuntimeError("no room, as a library says it")
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
    tracker = MemoryTracker()
    assert log_agents(FakeTraining(), tracker, data_folder=DataFolder(places[0])) is None
    assert tracker.artifacts == {"agent/last/agent.bin": b"last", "agent/best/agent.bin": b"best"}
    assert files(*places) == []


@pytest.mark.parametrize("room", [0, 1])
def test_without_room_in_the_run_they_go_to_the_working_directory(places, room):
    tracker = FullTracker()
    tracker.room = room
    rescued = log_agents(FakeTraining(), tracker, data_folder=DataFolder(places[0]))
    assert rescued == places[1] / NAME
    assert (rescued / "best" / "agent.bin").read_text() == "best"
    assert files(places[0], places[2]) == []


def test_temporary_files_need_no_room_of_their_own(places):
    tracker, data_folder = MemoryTracker(), DataFolder(places[0])
    assert log_agents(FakeTraining(places[2]), tracker, data_folder=data_folder) is None
    assert len(tracker.artifacts) == 2
    assert files(*places) == []


def test_without_room_there_they_go_where_temporary_files_go(places):
    training = FakeTraining(*places[:2])
    rescued = log_agents(training, FullTracker(), data_folder=DataFolder(places[0]))
    assert rescued == places[2] / NAME
    assert files(*places[:2]) == []


def test_a_data_folder_that_is_gone_loses_no_agent(places, tmp_path):
    gone = DataFolder(tmp_path / "gone")
    assert log_agents(FakeTraining(), FullTracker(), data_folder=gone) == places[1] / NAME


def test_an_agent_that_fits_nowhere_is_told(places, tmp_path):
    with pytest.raises(StoreError, match="agent of run memory is lost"):
        log_agents(FakeTraining(tmp_path), MemoryTracker(), data_folder=DataFolder(places[0]))
    assert files(*places) == []

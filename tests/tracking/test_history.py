from datetime import UTC, datetime

import pytest

from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import mlflow_store
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, find_run, list_runs, read_run
from aimbot_lab.tracking.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.ui import ui_command


def finished_run(data_folder, name, *, experiment="x"):
    tracker = open_run(data_folder, TrackingSettings(experiment=experiment), RunDescription(name))
    tracker.log_metrics(1, {"win_rate/pooled": 0.25})
    tracker.log_metrics(2, {"win_rate/pooled": 0.75})
    tracker.finish("FINISHED")
    return tracker.run_id


def test_runs_of_all_experiments_come_newest_first(data_folder):
    ids = [finished_run(data_folder, f"run {i}", experiment=f"e{i}") for i in range(3)]
    runs = list_runs(data_folder)
    assert [run.run_id for run in runs] == ids[::-1]
    assert [run.experiment for run in runs] == ["e2", "e1", "e0"]
    assert [run.run_id for run in list_runs(data_folder, max_results=2)] == ids[:0:-1]


def test_a_summary_says_how_the_run_stands(data_folder):
    before = datetime.now(UTC)
    finished_run(data_folder, "named")
    (run,) = list_runs(data_folder)
    assert (run.name, run.experiment, run.status) == ("named", "x", "FINISHED")
    assert run.metrics == {"win_rate/pooled": 0.75}
    assert run.tags["mlflow.source.name"] == "aimbot-lab"
    assert abs((run.started - before).total_seconds()) < 60
    assert run.seconds == (run.ended - run.started).total_seconds() >= 0


def test_a_running_run_has_no_end(data_folder):
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("running"))
    (run,) = list_runs(data_folder)
    assert (run.status, run.ended, run.seconds) == ("RUNNING", None, None)
    tracker.finish("KILLED")


def test_without_a_store_there_are_no_runs_and_nothing_is_made(tmp_path):
    folder = DataFolder(tmp_path / "none")
    assert list_runs(folder) == []
    assert not folder.root.exists()


def test_reading_from_a_mistyped_database_makes_none(tmp_path):
    file = tmp_path / "mistyped.db"
    data, uri = DataFolder(tmp_path / "data"), f"sqlite:///{file}"
    for read in (
        lambda: list_runs(data, tracking_uri=uri),
        lambda: find_run(data, "latest", tracking_uri=uri),
        lambda: read_run(data, "a" * 32, tracking_uri=uri),
        lambda: download_artifact(data, "a" * 32, name="x", tracking_uri=uri),
        lambda: ui_command(data, tracking_uri=uri),
    ):
        with pytest.raises(ConfigurationError, match=f"{uri}: there is no file {file}"):
            read()
    assert [*tmp_path.iterdir()] == []


def test_a_missing_artifact_is_one_line(data_folder):
    run_id = finished_run(data_folder, "empty")
    with pytest.raises(StoreError) as caught:
        download_artifact(data_folder, run_id, name="agent.zip")
    assert "agent.zip" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_artifact_of_an_unknown_run_is_one_line(data_folder):
    with pytest.raises(StoreError, match="0123") as caught:
        download_artifact(data_folder, "0123", name="agent.zip")
    assert "\n" not in str(caught.value)


def test_an_artifact_name_cannot_leave_the_runs_folder(data_folder):
    with pytest.raises(ConfigurationError):
        download_artifact(data_folder, "0123", name="../../mlflow.db")


def test_a_run_is_found_by_the_beginning_of_its_id_and_the_newest_by_latest(data_folder):
    ids = [finished_run(data_folder, f"run {i}") for i in range(2)]
    assert [find_run(data_folder, run_id[:12]).run_id for run_id in ids] == ids
    assert find_run(data_folder, "latest").run_id == ids[1]


@pytest.mark.parametrize(("beginning", "reason"), [("", "no such run"), ("xyz", "no such run")])
def test_a_run_that_is_not_there_is_one_line(data_folder, beginning, reason):
    finished_run(data_folder, "other")
    with pytest.raises(ConfigurationError, match=f"{reason}.*aimbot-lab runs"):
        find_run(data_folder, beginning)


def test_two_runs_that_begin_so_are_not_guessed_between(data_folder):
    ids = [finished_run(data_folder, "run") for _ in range(17)]  # two of them begin alike
    first = [run_id[0] for run_id in ids]
    common = next(letter for letter in first if first.count(letter) > 1)
    with pytest.raises(ConfigurationError, match="several runs begin so"):
        find_run(data_folder, common)


def test_a_run_is_read_by_its_whole_id_without_a_look_at_the_others(data_folder, monkeypatch):
    run_id = finished_run(data_folder, "one")
    finished_run(data_folder, "other")
    search, found = mlflow_store.MlflowStore._search, []

    def counted(self, condition, *, max_results):
        found.extend(search(self, condition, max_results=max_results))
        return found

    listed = list_runs(data_folder)
    monkeypatch.setattr(mlflow_store.MlflowStore, "_search", counted)
    assert read_run(data_folder, run_id) == listed[1]
    assert len(found) == 1


@pytest.mark.parametrize("run_id", ["0" * 32, "' OR 1", ""])
def test_a_run_that_no_store_has_is_one_line(data_folder, tmp_path, run_id):
    finished_run(data_folder, "other")
    for folder in (data_folder, DataFolder(tmp_path / "none")):
        with pytest.raises(ConfigurationError, match="no such run; aimbot-lab runs") as caught:
            read_run(folder, run_id)
        assert "\n" not in str(caught.value)

"""A run is opened: where it would go, what it holds and publishes."""

import os
import sqlite3
import tempfile
from contextlib import closing

import pytest

import aimbot_lab.experiment.runs.run as experiment_run
from aimbot_lab import __version__
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import RunRequest, run_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import data_folder as data_folder_module
from aimbot_lab.tracking import journal_tracker
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, check_destination, open_run
from aimbot_lab.tracking.run_folder import read_owner
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import MemoryTracker, checked_run_name
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.version import code_hash

SETTINGS = TrackingSettings(experiment="goto")


def raw_run(data_folder, run_id):
    from aimbot_lab.tracking.data_folder import embedded_address
    from aimbot_lab.tracking.mlflow_store import connect

    return connect(data_folder, embedded_address(data_folder)).client.get_run(run_id)


def test_a_run_begins_with_its_name_parameters_and_tags(data_folder):
    params = {"train.lr": 0.001, "seed": 7, "name": "ü", "none": None, "long": "x" * 7000}
    params |= {f"p/{i}": i for i in range(150)}
    tracker = open_run(data_folder, SETTINGS, RunDescription("first", params, {"lab.seed": "7"}))
    run = raw_run(data_folder, tracker.run_id)
    assert run.info.run_name == "first"
    assert run.info.status == "RUNNING"
    assert run.info.experiment_id == tracker.experiment_id
    assert run.data.params["train.lr"] == "0.001"
    assert run.data.params["none"] == "None"
    assert run.data.params["long"] == "x" * 5999 + "…"
    assert len(run.data.params) == 155
    assert run.data.tags["lab.seed"] == "7"
    assert run.data.tags["lab.version"] == __version__
    assert run.data.tags["lab.code"] == code_hash()
    assert run.data.tags["mlflow.source.name"] == "aimbot-lab"
    assert run.data.tags["mlflow.user"]
    tracker.finish("FINISHED")


def test_the_owner_is_this_process_while_the_run_lives(data_folder):
    tracker = open_run(data_folder, SETTINGS, RunDescription("owned"))
    owner = read_owner(data_folder.run_folder(tracker.run_id) / "owner.json")
    assert owner.pid == os.getpid()
    assert owner.tracking_uri is None
    tracker.finish("FINISHED")
    assert list(data_folder.runs.iterdir()) == []


def test_a_database_elsewhere_replaces_the_embedded_store(data_folder, tmp_path, monkeypatch):
    other = tmp_path / "other.db"
    data_folder.database.rename(other)
    settings = TrackingSettings(uri=f"sqlite:///{other}")
    tracker = open_run(data_folder, settings, RunDescription("elsewhere"))
    assert tracker.finish("FINISHED").complete
    assert tracker.tracking_uri == f"sqlite:///{other}"
    assert not data_folder.database.exists()
    assert list_runs(data_folder) == []
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{other}")
    assert [run.name for run in list_runs(data_folder)] == ["elsewhere"]


def nothing_was_left(data_folder):
    return not data_folder.runs.exists() or list(data_folder.runs.iterdir()) == []


def test_a_parameter_that_the_store_refuses_is_refused_before_anything(tmp_path):
    folder = DataFolder(tmp_path / "new")
    with pytest.raises(ValueError, match="name"):
        open_run(folder, SETTINGS, RunDescription("bad", {"a[0]": 1}))
    assert not folder.root.exists()


def test_a_server_that_is_not_there_is_one_line_and_creates_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    folder = DataFolder(tmp_path / "new")
    uri = "http://me:secret@127.0.0.1:9"
    with pytest.raises(StoreError) as caught:
        open_run(folder, SETTINGS, RunDescription("bad"), tracking_uri=uri)
    message = str(caught.value)
    assert "http://me:***@127.0.0.1:9" in message
    assert "Connection refused" in message
    assert "secret" not in message
    assert "\n" not in message
    assert not folder.root.exists()


def test_a_database_that_is_not_there_is_one_line_and_creates_nothing(tmp_path):
    folder = DataFolder(tmp_path / "new")
    uri = f"sqlite:///{tmp_path}/missing/mlflow.db"
    with pytest.raises(StoreError, match="unable to open") as caught:
        open_run(folder, SETTINGS, RunDescription("bad"), tracking_uri=uri)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_one_line(tmp_path):
    folder = DataFolder(tmp_path)
    folder.database.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError, match="not a database") as caught:
        open_run(folder, SETTINGS, RunDescription("bad"))
    assert str(folder.database) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert nothing_was_left(folder)


def test_the_schema_of_another_mlflow_is_one_line_that_names_the_remedy(data_folder):
    with closing(sqlite3.connect(data_folder.database)) as database, database:
        database.execute("update alembic_version set version_num = 'abcdef'")
    with pytest.raises(StoreError, match="mlflow db upgrade") as caught:
        open_run(data_folder, SETTINGS, RunDescription("bad"))
    assert "\n" not in str(caught.value)
    assert nothing_was_left(data_folder)


def test_a_deleted_experiment_is_one_line_that_names_the_remedy(data_folder):
    from aimbot_lab.tracking.data_folder import embedded_address
    from aimbot_lab.tracking.mlflow_store import connect

    store = connect(data_folder, embedded_address(data_folder))
    store.client.delete_experiment(store.experiment_id("goto"))
    with pytest.raises(ConfigurationError, match="restore"):
        open_run(data_folder, SETTINGS, RunDescription("bad"))
    assert nothing_was_left(data_folder)


@pytest.mark.parametrize("error", [StoreError("broken"), KeyboardInterrupt()])
def test_a_failure_after_the_run_was_made_leaves_no_run(data_folder, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(journal_tracker, "Journal", fail)
    with pytest.raises(type(error)):
        open_run(data_folder, SETTINGS, RunDescription("half"))
    assert list_runs(data_folder) == []
    assert nothing_was_left(data_folder)


def test_every_user_name_will_do(data_folder, monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    tracker = open_run(data_folder, SETTINGS, RunDescription("nameless"))
    assert raw_run(data_folder, tracker.run_id).data.tags["mlflow.user"] == "unknown"
    tracker.finish("FINISHED")


def test_variables_that_others_heed_are_said_to_have_no_effect(data_folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "7")
    monkeypatch.setenv("MLFLOW_RUN_ID", "a1")
    told = []
    open_run(data_folder, SETTINGS, RunDescription("n"), on_outage=told.append).finish("FINISHED")
    assert [text.partition(";")[0] for text in told] == [
        "environment variable MLFLOW_EXPERIMENT_ID is ignored",
        "environment variable MLFLOW_RUN_ID is ignored",
    ]


def test_no_parameter_and_no_tag_has_a_password(data_folder):
    login = "redis://me:secret@host"
    description = RunDescription("n", {"env.url": login}, {"why": f"see {login}"})
    tracker = open_run(data_folder, SETTINGS, description)
    run = raw_run(data_folder, tracker.run_id)
    assert run.data.params["env.url"] == "redis://me:***@host"
    assert run.data.tags["why"] == "see redis://me:***@host"
    tracker.finish("FINISHED")


def tables(data_folder: DataFolder) -> tuple[set[str], list[tuple[str, str]]]:
    """The names of the store's tables and indices, and its experiments with their folders."""
    with closing(sqlite3.connect(data_folder.database)) as database:
        made = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        experiments = "SELECT name, artifact_location FROM experiments ORDER BY experiment_id"
        return made, database.execute(experiments).fetchall()


def test_other_projects_get_a_store_of_their_own_from_a_copy_or_where_that_is_damaged(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [DataFolder(tmp_path / name) for name in ("first", "second", "third", "fourth")]
    for number, folder in enumerate(folders):
        open_run(folder, SETTINGS, RunDescription(str(number))).finish("FINISHED")
        assert [run.name for run in list_runs(folder)] == [str(number)]
        root = folder.artifacts.as_uri()
        assert tables(folder)[1] == [("Default", f"{root}/0"), ("goto", root)]
        assert tables(folder)[0] == tables(folders[0])[0]
        (copy,) = (tmp_path / "cache" / "aimbot-lab").glob("mlflow-*.db")
        with closing(sqlite3.connect(folder.database)) as database:
            assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        if number == 1:
            copy.write_bytes(copy.read_bytes()[:5000])
        elif number == 2:
            with copy.open("r+b") as file:
                file.seek(65 * 4096)
                file.write(bytes(4096))  # a page that is seldom read


def refusal(folder, settings=None, uri=None):
    with pytest.raises(ConfigurationError) as caught:
        check_destination(DataFolder(folder), settings or TrackingSettings(), tracking_uri=uri)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_that_can_be_made_passes_and_is_not_made(tmp_path):
    check_destination(DataFolder(tmp_path / "a" / "b"), TrackingSettings())
    check_destination(DataFolder(tmp_path), TrackingSettings(), tracking_uri="http://host:5000")
    check_destination(
        DataFolder(tmp_path), TrackingSettings(), tracking_uri=f"sqlite:///{tmp_path}/x.db"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    message = refusal(tmp_path / "file" / "data")
    assert "Not a directory" in message
    assert "--data-dir" in message


def test_a_folder_with_too_long_a_name_is_refused(tmp_path):
    assert "too long" in refusal(tmp_path / ("x" * 300))


def test_a_link_to_nowhere_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "No such file" in refusal(tmp_path / "link" / "data")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in refusal(tmp_path / "data")


def test_a_full_disk_is_refused(tmp_path, monkeypatch):
    class Full(tempfile.SpooledTemporaryFile):
        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(data_folder_module, "TemporaryFile", lambda dir: Full())
    assert "No space left on device" in refusal(tmp_path)


def test_an_address_that_cannot_be_used_is_refused_wherever_it_is_given(tmp_path, monkeypatch):
    assert "nonsense" in refusal(tmp_path, uri="nonsense://x")
    assert "no folder" in refusal(tmp_path, TrackingSettings(uri=f"sqlite:///{tmp_path}/no/x.db"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    assert "MLFLOW_TRACKING_URI" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["x" * 250, "größe 日本 👩‍🚀"])
def test_a_name_of_one_line_will_do(name):
    assert checked_run_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\x1b[0m", "\u2028", "x" * 251, "\udcff", "a\u202eb", "a\u2066b"]
)
def test_a_name_that_a_list_cannot_show_is_one_line_with_exit_code_2(name):
    with pytest.raises(ConfigurationError, match="name of a run") as caught:
        checked_run_name(name)
    assert caught.value.exit_code == 2
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


CURRICULUM = """
name: tiny
env: {num_envs: 2}
lessons:
  - {name: only, targets: {goto: 1}, completion_criteria: {threshold: 0.9}}
train: {total_steps: 8, n_steps: 2, batch_size: 2, n_epochs: 1, torch_threads: 1}
tracking: {uri: "http://me:secret@host:5000"}  # was: http://me:older@host
"""


def test_passwords_reach_neither_artifacts_nor_the_description(tmp_path, monkeypatch):
    file = tmp_path / "tiny.yaml"
    file.write_text(CURRICULUM)
    tracker, opened = MemoryTracker(), []

    def open_run(_folder, settings, description, **_):
        opened.append((settings, description))
        return tracker

    monkeypatch.setattr(experiment_run, "open_run", open_run)
    request = RunRequest(load_curriculum(file), DataFolder(tmp_path / "data"))
    result = run_curriculum(request, SilentObserver(), should_stop=lambda: False)

    ((settings, description),) = opened
    assert settings.uri == "http://me:secret@host:5000"
    for name in ("curriculum.yaml", "resolved.yaml"):
        text = tracker.artifacts[name].decode()
        assert "http://me:***@host:5000" in text
        assert "secret" not in text
        assert "older" not in text
        (tmp_path / "again.yaml").write_text(text)
        assert load_curriculum(tmp_path / "again.yaml").config.lessons
    assert "secret" not in str(description)
    assert "secret" not in str(result.as_json())
    assert "secret" not in str(tracker.tags)
    assert (result.entries_dropped, result.agent_folder) == (0, None)

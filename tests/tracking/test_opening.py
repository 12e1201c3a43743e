"""A run is opened: where its data folder is, where it would go, what it holds and publishes."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import aimbot_lab.experiment.runs.run as experiment_run
from aimbot_lab import __version__
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import RunRequest, run_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import data_folder as data_folder_module
from aimbot_lab.tracking import journal_tracker, mlflow_store
from aimbot_lab.tracking.data_folder import (
    DataFolder,
    choose_address,
    embedded_address,
    locate_data_folder,
)
from aimbot_lab.tracking.history import download_artifact, list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, check_destination, open_run
from aimbot_lab.tracking.mlflow_store import connect
from aimbot_lab.tracking.run_folder import read_owner
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import MemoryTracker, checked_run_name
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.version import code_hash

SETTINGS = TrackingSettings(experiment="goto")


def raw_run(data_folder, run_id):
    return connect(data_folder, embedded_address(data_folder)).client.get_run(run_id)


def refused(folder, *, error=StoreError, match=None, params=None, **given):
    """The one line in which a run is refused that leaves nothing behind."""
    with pytest.raises(error, match=match) as caught:
        open_run(folder, SETTINGS, RunDescription("bad", params or {}), **given)
    assert "\n" not in str(caught.value)
    assert not folder.runs.exists() or list(folder.runs.iterdir()) == []
    return str(caught.value)


def test_a_run_begins_with_its_name_owner_parameters_and_tags(data_folder):
    params = {"train.lr": 0.001, "seed": 7, "name": "ü", "none": None, "long": "x" * 7000}
    params |= {f"p/{i}": i for i in range(150)} | {"env.url": "redis://me:secret@host"}
    tags = {"lab.seed": "7", "why": "see redis://me:secret@host"}
    tracker = open_run(data_folder, SETTINGS, RunDescription("first", params, tags))
    owner = read_owner(data_folder.run_folder(tracker.run_id) / "owner.json")
    assert (owner.pid, owner.tracking_uri) == (os.getpid(), None)
    run = raw_run(data_folder, tracker.run_id)
    assert (run.info.run_name, run.info.status) == ("first", "RUNNING")
    assert run.info.experiment_id == tracker.experiment_id
    kept = {"train.lr": "0.001", "none": "None", "env.url": "redis://me:***@host"}
    assert run.data.params.items() >= {**kept, "long": "x" * 5999 + "…"}.items()
    assert len(run.data.params) == 156
    kept = {"lab.seed": "7", "lab.version": __version__, "lab.code": code_hash()}
    kept |= {"mlflow.source.name": "aimbot-lab", "why": "see redis://me:***@host"}
    assert run.data.tags.items() >= kept.items()
    assert run.data.tags["mlflow.user"]
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


def test_what_is_not_there_or_refused_is_one_line_and_creates_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    folder = DataFolder(tmp_path / "new")
    refused(folder, error=ValueError, match="name", params={"a[0]": 1})
    uri = "http://me:secret@127.0.0.1:9"
    line = refused(folder, match="Connection refused", tracking_uri=uri)
    assert "http://me:***@127.0.0.1:9" in line
    assert "secret" not in line
    missing = f"sqlite:///{tmp_path}/missing/mlflow.db"
    refused(folder, match="unable to open", tracking_uri=missing)
    assert list(tmp_path.iterdir()) == []


def test_a_database_or_schema_of_something_else_is_one_line(tmp_path, data_folder):
    folder = DataFolder(tmp_path)
    folder.database.write_bytes(b"not a database" * 100)
    assert str(folder.database) in refused(folder, match="not a database")
    with closing(sqlite3.connect(data_folder.database)) as database, database:
        database.execute("update alembic_version set version_num = 'abcdef'")
    refused(data_folder, match="mlflow db upgrade")


def test_a_deleted_experiment_is_one_line_that_names_the_remedy(data_folder):
    store = connect(data_folder, embedded_address(data_folder))
    store.client.delete_experiment(store.experiment_id("goto"))
    refused(data_folder, error=ConfigurationError, match="restore")


@pytest.mark.parametrize("error", [StoreError("broken"), KeyboardInterrupt()])
def test_a_failure_after_the_run_was_made_leaves_no_run(data_folder, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(journal_tracker, "Journal", fail)
    refused(data_folder, error=type(error))
    assert list_runs(data_folder) == []


def test_every_user_name_will_do_and_variables_that_others_heed_have_no_effect(
    data_folder, monkeypatch
):
    def nameless():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    ignored = ("MLFLOW_EXPERIMENT_ID", "MLFLOW_RUN_ID")
    for name in ignored:
        monkeypatch.setenv(name, "7")
    told = []
    tracker = open_run(data_folder, SETTINGS, RunDescription("n"), on_outage=told.append)
    assert raw_run(data_folder, tracker.run_id).data.tags["mlflow.user"] == "unknown"
    tracker.finish("FINISHED")
    assert [text.partition(";")[0] for text in told] == [
        f"environment variable {name} is ignored" for name in ignored
    ]


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
    folders = [DataFolder(tmp_path / name) for name in ("first", "second", "third")]
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
            whole = copy.read_bytes()
            copy.write_bytes(whole[:5000])
            assert not mlflow_store._copied(tmp_path / "torn.db", root)
            at = 65 * 4096  # a page that is seldom read
            copy.write_bytes(whole[:at] + bytes(4096) + whole[at + 4096 :])


def refusal(folder, settings=None, uri=None):
    with pytest.raises(ConfigurationError) as caught:
        check_destination(DataFolder(folder), settings or TrackingSettings(), tracking_uri=uri)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_that_can_be_made_passes_and_is_not_made(tmp_path):
    for path, uri in (
        (tmp_path / "a" / "b", None),
        (tmp_path, "http://host:5000"),
        (tmp_path, f"sqlite:///{tmp_path}/x.db"),
    ):
        check_destination(DataFolder(path), TrackingSettings(), tracking_uri=uri)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    message = refusal(tmp_path / "file" / "data")
    assert "Not a directory" in message
    assert "--data-dir" in message
    assert "too long" in refusal(tmp_path / ("x" * 300))
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


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\x1b[0m", "\u2028", "x" * 251, "\udcff", "a\u202eb", "a\u2066b"]
)
def test_a_name_that_a_list_cannot_show_is_one_line_with_exit_code_2(name):
    for good in ("x" * 250, "größe 日本 👩‍🚀"):
        assert checked_run_name(good) == good
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
        assert [word for word in ("secret", "older") if word in text] == []
        (tmp_path / "again.yaml").write_text(text)
        assert load_curriculum(tmp_path / "again.yaml").config.lessons
    assert "secret" not in f"{description} {result.as_json()} {tracker.tags}"
    assert (result.entries_dropped, result.agent_folder) == (0, None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("made", "variable", "found"),
    [
        ([".aimbot-lab/"], "environment", "environment"),
        ([".aimbot-lab/"], "", ".aimbot-lab"),  # an empty variable is none
        ([".aimbot-lab/", "a/.git"], None, "a/.aimbot-lab"),
        (["pyproject.toml", "a/.aimbot-lab/"], None, "a/.aimbot-lab"),
        (["a/.git"], None, "a/.aimbot-lab"),
        (["a/pyproject.toml"], None, "a/.aimbot-lab"),
    ],
)
def test_a_path_counts_before_the_environment_and_that_before_the_nearest_folder_or_project(
    project, monkeypatch, made, variable, found
):
    for name in made:
        (Path.mkdir if name.endswith("/") else Path.touch)(project / name)
    if variable is not None:
        monkeypatch.setenv("AIMBOT_LAB_DATA_DIR", variable and str(project / variable))
    assert locate_data_folder().root == project / found
    assert locate_data_folder(project / "explicit").root == project / "explicit"


def test_without_a_project_it_goes_to_the_working_directory(project, monkeypatch):
    # Nothing above a temporary folder is a project, unless someone made it one.
    if any((p / m).exists() for p in project.parents for m in (".git", "pyproject.toml")):
        pytest.skip("the temporary folder lies inside a project")
    assert locate_data_folder().root == Path.cwd() / ".aimbot-lab"


def no_folder(path=None, error=ConfigurationError):
    with pytest.raises(error) as caught:
        locate_data_folder(path).create()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_can_be_no_data_folder_is_one_line_that_says_what_to_do(tmp_path, monkeypatch):
    for unset in (Path(""), Path(".")):  # whose files would lie all over the working directory
        assert "--data-dir: must name a folder" in no_folder(unset)
    file = tmp_path / "file"
    file.touch()
    assert str(file) in no_folder(file)
    assert "--data-dir" in no_folder(file)
    assert "--data-dir" in no_folder(file / "data", StoreError)
    assert "UTF-8" in no_folder(tmp_path / "\udcff")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "runs").touch()
    begins = f"data folder {tmp_path}/folder: {tmp_path}/folder/runs: File exists"
    assert no_folder(tmp_path / "folder", StoreError).startswith(begins)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "working directory" in no_folder()


def test_the_working_directory_may_be_a_data_folder_already(project, monkeypatch):
    here = Path.cwd()
    (here / "mlflow.db").touch()
    assert locate_data_folder(Path(".")).root == here
    (here / ".aimbot-lab").mkdir()
    monkeypatch.chdir(here / ".aimbot-lab")
    assert locate_data_folder(Path(".")).root == here / ".aimbot-lab"


@pytest.mark.parametrize("name", ["a?b=c&d #", "100%20", "größe '日本"])
def test_a_run_works_in_an_odd_folder(tmp_path, template_database, name):
    folder = locate_data_folder(tmp_path / name / ".aimbot-lab")
    folder.create()
    shutil.copy(template_database, folder.database)
    tracker = open_run(folder, TrackingSettings(), RunDescription("odd"))
    tracker.log_text("seen", "notes/a b.txt")
    assert tracker.finish("FINISHED").complete
    assert [run.run_id for run in list_runs(folder)] == [tracker.run_id]
    path = download_artifact(folder, tracker.run_id, name="notes/a b.txt")
    assert path.read_text() == "seen"
    assert path.is_relative_to(folder.artifacts)
    with closing(sqlite3.connect(folder.database)) as database:
        assert database.execute("select run_uuid from runs").fetchall() == [(tracker.run_id,)]
    # MLflow makes folders for an address as it is written, not as it is meant.
    assert [path.name for path in tmp_path.iterdir()] == [name]
    again = choose_address(folder, explicit=folder.tracking_uri)
    assert again.embedded
    assert again.sqlite_file == folder.database

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking.data_folder import choose_address, locate_data_folder
from aimbot_lab.tracking.history import download_artifact, list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings


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


def refusal(path=None, error=ConfigurationError):
    with pytest.raises(error) as caught:
        locate_data_folder(path).create()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_can_be_no_data_folder_is_one_line_that_says_what_to_do(tmp_path, monkeypatch):
    for unset in (Path(""), Path(".")):  # whose files would lie all over the working directory
        assert "--data-dir: must name a folder" in refusal(unset)
    file = tmp_path / "file"
    file.touch()
    assert str(file) in refusal(file)
    assert "--data-dir" in refusal(file)
    assert "--data-dir" in refusal(file / "data", StoreError)
    assert "UTF-8" in refusal(tmp_path / "\udcff")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "runs").touch()
    begins = f"data folder {tmp_path}/folder: {tmp_path}/folder/runs: File exists"
    assert refusal(tmp_path / "folder", StoreError).startswith(begins)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "working directory" in refusal()


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

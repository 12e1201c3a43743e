from pathlib import Path

import pytest
from pydantic import ValidationError

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import choose_address
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.settings import TrackingSettings

FOLDER = DataFolder(Path("/data"))


def test_explicit_then_setting_then_environment_then_embedded(monkeypatch):
    assert choose_address(FOLDER).uri == "sqlite:////data/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://environment")
    assert choose_address(FOLDER).uri == "http://environment"
    assert choose_address(FOLDER, setting="http://setting").uri == "http://setting"
    chosen = choose_address(FOLDER, explicit="http://explicit", setting="http://setting")
    assert chosen.uri == "http://explicit"


def test_only_the_data_folders_own_store_is_embedded():
    assert choose_address(FOLDER).embedded
    assert choose_address(FOLDER, explicit=FOLDER.tracking_uri).embedded
    assert not choose_address(FOLDER, explicit="sqlite:////other/mlflow.db").embedded
    assert not choose_address(FOLDER, explicit="http://host:5000").embedded


def test_a_relative_sqlite_path_means_the_working_directory_of_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = choose_address(FOLDER, explicit="sqlite:///x.db").uri
    assert uri == f"sqlite:///{tmp_path}/x.db"


@pytest.mark.parametrize(
    "uri",
    [
        "ftp://host",
        "mlruns",
        "./mlruns",
        "file:///x",
        "http://",
        "http://[",
        "sqlite://",
        "nonsense",
    ],
)
def test_an_unusable_address_is_one_line_with_exit_code_2(uri):
    with pytest.raises(ConfigurationError) as caught:
        choose_address(FOLDER, explicit=uri)
    assert "tracking address" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unusable_address_from_the_environment_names_the_variable(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI"):
        choose_address(FOLDER)


def test_a_password_is_never_shown():
    address = choose_address(FOLDER, explicit="postgresql://me:secret@host/db")
    assert address.shown == "postgresql://me:***@host/db"
    with pytest.raises(ConfigurationError) as caught:
        choose_address(FOLDER, explicit="ftp://me:secret@host/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("bad", [{"uri": "mlruns"}, {"experiment": ""}, {"experiment": " "}])
def test_settings_check_themselves(bad):
    with pytest.raises(ValidationError):
        TrackingSettings(**bad)

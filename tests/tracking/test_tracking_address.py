from pathlib import Path

import pytest
from pydantic import ValidationError

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.address import choose_address, kept_address, without_password
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
    for uri in ("mlruns", "databricks"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        with pytest.raises(ConfigurationError, match="MLFLOW_TRACKING_URI: ") as caught:
            choose_address(FOLDER)
        assert "MLFLOW_TRACKING_URI= (empty) means" in str(caught.value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    assert choose_address(FOLDER).embedded


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("mysql+pymysql://me:se:cr@et@host:1/db?a=b", "mysql+pymysql://me:***@host:1/db?a=b"),
        (
            "postgresql://host/db?a=b&password=secret&c=d",
            "postgresql://host/db?a=b&password=***&c=d",
        ),
        ("https://:secret@host", "https://:***@host"),
        ("http://host:5000/path@5", "http://host:5000/path@5"),
        ("http://[::1]:5000", "http://[::1]:5000"),
    ],
)
def test_a_password_is_never_shown(uri, shown):
    assert choose_address(FOLDER, explicit=uri).shown == shown


@pytest.mark.parametrize("text", ["--set uri=http://me:se/secret@host: bad", "http:/me:secret@h"])
def test_a_password_in_what_is_almost_an_address_is_not_shown_either(text):
    assert "secret" not in without_password(text)


@pytest.mark.parametrize(
    "text", ["http://host:5000?a@b", "http://host:5000/a@b", "http://[::1]:5000/a@b", "a: b@c"]
)
def test_a_port_is_no_password(text):
    assert without_password(text) == text


def test_passwords_are_taken_out_of_any_text():
    yaml = (
        "# was http://a:one@old\ntracking:\n  uri: 'http://me:two@host:5000'\n  experiment: a@b\n"
    )
    assert without_password(yaml) == yaml.replace("one", "***").replace("two", "***")
    assert without_password(without_password(yaml)) == without_password(yaml)


@pytest.mark.parametrize(
    "uri",
    [
        *("ftp://me:secret@host/db", "http://me:secret/x@host", "http://me:secret#x@host"),
        *("http:/me:secret@host", "me:secret@host", "http://me:secret\u2100@host"),
    ],
)
def test_no_error_shows_a_password(uri):
    with pytest.raises(ConfigurationError) as caught:
        choose_address(FOLDER, explicit=uri)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("kept", "connects"),
    [
        ("http://me:***@host:5000/path", "http://host:5000/path"),
        ("postgresql://me:***@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?a=b&password=***&c=d", "postgresql://host/db?a=b&c=d"),
        ("http://host:5000/a@b", "http://host:5000/a@b"),
    ],
)
def test_an_address_kept_without_its_password_leaves_the_login_to_others(kept, connects):
    assert kept_address(FOLDER, kept).uri == connects
    assert choose_address(FOLDER, explicit=kept).uri == connects
    assert kept_address(FOLDER, None).embedded


@pytest.mark.parametrize(
    "uri", ["http://me:se:cr@et@host:5000", "postgresql://host/db?password=secret&c=d"]
)
def test_the_password_of_a_kept_address_comes_from_the_environment_for_that_address_alone(
    uri, monkeypatch
):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    kept = without_password(uri)
    assert kept_address(FOLDER, kept).uri == uri
    assert choose_address(FOLDER, setting=kept).uri == uri
    assert "secret" not in kept_address(FOLDER, kept.replace("host", "other")).uri


@pytest.mark.parametrize("port", ["x", "70000"])
def test_a_port_that_is_none_is_one_line(port):
    with pytest.raises(ConfigurationError, match="port of the tracking address"):
        choose_address(FOLDER, explicit=f"http://host:{port}")


def test_the_file_of_a_database_is_known():
    assert choose_address(FOLDER, explicit="sqlite:////a%23b/x.db?y=z").sqlite_file == Path(
        "/a#b/x.db"
    )
    assert choose_address(FOLDER, explicit="http://host").sqlite_file is None


@pytest.mark.parametrize("bad", [{"uri": "mlruns"}, {"experiment": ""}, {"experiment": " \t"}])
def test_settings_check_themselves(bad):
    with pytest.raises(ValidationError):
        TrackingSettings(**bad)


def test_a_blank_experiment_is_told_as_a_sentence():
    with pytest.raises(ValidationError) as caught:
        TrackingSettings(experiment=" ")
    (error,) = caught.value.errors()
    assert error["loc"] == ("experiment",)
    assert str(error["ctx"]["error"]) == "must not be blank"

"""Servers: their addresses, those that are slow, dead or something else, and our own."""

import json
import socket
import threading
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pydantic import ValidationError

import aimbot_lab.tracking.mlflow_app
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import mlflow_store
from aimbot_lab.tracking.data_folder import (
    LOGIN,
    DataFolder,
    TrackingAddress,
    choose_address,
    kept_address,
    store_error,
    without_password,
)
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.mlflow_app import APP_NAME, EXPERIMENT_TAGS, TOKEN_VARIABLE, create_app
from aimbot_lab.tracking.run_folder import OWNER_TAG
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import RunSummary
from aimbot_lab.tracking.ui import page_of, page_of_experiment, ui_command

FOLDER = DataFolder(Path("/data"))


def refusal(uri=None):
    """The one line in which an address is refused."""
    with pytest.raises(ConfigurationError) as caught:
        choose_address(FOLDER, explicit=uri)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_explicit_then_setting_then_environment_then_embedded(tmp_path, monkeypatch):
    assert choose_address(FOLDER).uri == "sqlite:////data/mlflow.db"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://environment")
    assert choose_address(FOLDER).uri == "http://environment"
    assert choose_address(FOLDER, setting="http://setting").uri == "http://setting"
    chosen = choose_address(FOLDER, explicit="http://explicit", setting="http://setting")
    assert chosen.uri == "http://explicit"
    monkeypatch.chdir(tmp_path)
    uri = choose_address(FOLDER, explicit="sqlite:///x.db").uri
    assert uri == f"sqlite:///{tmp_path}/x.db"  # relative to the working directory of now


@pytest.mark.parametrize(
    ("uri", "embedded", "file"),
    [
        (None, True, "/data/mlflow.db"),
        (FOLDER.tracking_uri, True, "/data/mlflow.db"),
        ("sqlite:////a%23b/x.db?y=z", False, "/a#b/x.db"),
        ("http://host:5000", False, None),
    ],
)
def test_only_the_data_folders_own_store_is_embedded_and_the_file_of_a_database_is_known(
    uri, embedded, file
):
    chosen = choose_address(FOLDER, explicit=uri)
    assert (chosen.embedded, chosen.sqlite_file) == (embedded, file and Path(file))


@pytest.mark.parametrize(
    "uri",
    [
        *("ftp://me:secret@host/db", "http://me:secret/x@host", "http://me:secret#x@host"),
        *("http:/me:secret@host", "me:secret@host", "http://me:secret\u2100@host"),
        *("ftp://host", "mlruns", "http://[", "nonsense", "http://host:70000"),
    ],
)
def test_an_unusable_address_is_one_line_without_its_password(uri):
    line = refusal(uri)
    assert ("port of the " if "70000" in uri else "") + "tracking address" in line
    assert "secret" not in line


def test_an_unusable_address_from_the_environment_names_the_variable(monkeypatch):
    for uri in ("mlruns", "databricks"):
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        line = refusal()
        assert "MLFLOW_TRACKING_URI: " in line
        assert "MLFLOW_TRACKING_URI= (empty) means" in line
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
        ("http://[::1]:5000", "http://[::1]:5000"),
    ],
)
def test_a_password_is_never_shown(uri, shown):
    assert choose_address(FOLDER, explicit=uri).shown == shown


def test_passwords_are_taken_out_of_any_text_and_ports_are_none():
    for text in ("--set uri=http://me:se/secret@host: bad", "http:/me:secret@h"):
        assert "secret" not in without_password(text)
    for text in ("http://[::1]:5000/a@b", "a: b@c"):
        assert without_password(text) == text
    yaml = (
        "# was http://a:one@old\ntracking:\n  uri: 'http://me:two@host:5000'\n  experiment: a@b\n"
    )
    assert without_password(yaml) == yaml.replace("one", "***").replace("two", "***")
    assert without_password(without_password(yaml)) == without_password(yaml)


@pytest.mark.parametrize(
    ("kept", "connects"),
    [
        ("http://me:***@host:5000/path", "http://host:5000/path"),
        ("postgresql://host/db?a=b&password=***&c=d", "postgresql://host/db?a=b&c=d"),
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


def test_settings_check_themselves():
    for bad in ({"uri": "mlruns"}, {"experiment": ""}):
        with pytest.raises(ValidationError):
            TrackingSettings(**bad)
    with pytest.raises(ValidationError) as caught:
        TrackingSettings(experiment=" \t")
    (error,) = caught.value.errors()
    assert error["loc"] == ("experiment",)
    assert str(error["ctx"]["error"]) == "must not be blank"


def test_a_server_that_never_answers_is_one_line_after_one_try(tmp_path, monkeypatch):
    assert mlflow_store.ANSWER_SECONDS <= 10
    monkeypatch.setattr(mlflow_store, "ANSWER_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        host, port = silent.getsockname()
        with pytest.raises(StoreError) as caught:
            list_runs(DataFolder(tmp_path), tracking_uri=f"http://me:secret@{host}:{port}")
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert str(caught.value) == (
        f"tracking store http://me:***@{host}:{port}: no answer within 0.2 s"
    )


@contextmanager
def served(status, body):
    """Serve this answer to every request: the address, and what is asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_a_server_that_is_no_tracking_server_is_one_line_and_one_without_runs_has_none(tmp_path):
    broken = json.dumps({"error_code": "INTERNAL_ERROR", "message": "broken\ninside"}).encode()
    for status, body in (500, broken), (200, b"<html>hello</html>"):
        with served(status, body) as (address, asked), pytest.raises(StoreError) as caught:
            list_runs(DataFolder(tmp_path), tracking_uri=address)
        message = str(caught.value)
        assert message.startswith(f"tracking store {address}: ")
        assert "\n" not in message
        assert "hello" not in message
        assert len(asked) == 1
    with served(200, b"{}") as (address, asked):
        assert list_runs(DataFolder(tmp_path), tracking_uri=address) == []
    assert asked[0] == "/api/2.0/mlflow/experiments/search"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "API request to http://x failed with exception HTTPConnectionPool(host='x', port=1): "
            'Max retries exceeded with url: /a (Caused by ReadTimeoutError("HTTPConnectionPool('
            "host='x', port=1): Read timed out. (read timeout=30)\"))",
            "no answer within 30 s",
        ),
        ("API request to endpoint /a failed with error code 401 != 200. Response body: ''", LOGIN),
        (
            'connection to server at "x" failed: fe_sendauth: no password supplied',
            'connection to server at "x" failed: fe_sendauth: no password supplied; set '
            "MLFLOW_TRACKING_URI to the address with its password (none is stored)",
        ),
        (
            "The following failures occurred while downloading one or more artifacts from "
            "http://x/artifacts:\n##### File agent/last #####\n404 Client Error: Not Found",
            "artifact agent/last: 404 Client Error: Not Found",
        ),
        (
            "(raised as a result of Query-invoked autoflush; consider using a block)\n"
            "(sqlite3.OperationalError) database or disk is full\n[SQL: INSERT]",
            "(sqlite3.OperationalError) database or disk is full",
        ),
    ],
)
def test_the_reason_of_an_error_is_what_a_person_can_use(text, reason):
    address = TrackingAddress("http://x", embedded=False)
    told = str(store_error(RuntimeError(text), address, refused=False))
    assert told == f"tracking store http://x: {reason}"


def test_the_page_is_served_lean_and_to_this_machine_only(data_folder, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_AI_GATEWAY", "true")
    command = ui_command(data_folder, port=5123)
    assert command.address.startswith("http://127.0.0.1:5123/")
    assert command.arguments[1:4] == ["-m", "mlflow", "server"]
    pairs = set(zip(command.arguments, command.arguments[1:], strict=False))
    assert {("--host", "127.0.0.1"), ("--port", "5123"), ("--workers", "1")} <= pairs
    off = dict.fromkeys(("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "MLFLOW_ENABLE_AI_GATEWAY"), "false")
    kept = {"MLFLOW_BACKEND_STORE_URI": data_folder.tracking_uri, "DO_NOT_TRACK": "true", **off}
    assert command.environment.items() >= kept.items()


def test_each_start_has_a_token_of_its_own_which_like_the_address_is_no_argument(data_folder):
    uri = f"sqlite:///{data_folder.database}"
    commands = [ui_command(data_folder, tracking_uri=uri) for _ in range(2)]
    tokens = {urlsplit(command.address).path.strip("/") for command in commands}
    assert tokens == {command.environment[TOKEN_VARIABLE] for command in commands}
    assert len(tokens) == 2
    assert min(map(len, tokens)) >= 32
    arguments = " ".join(commands[0].arguments + commands[1].arguments)
    assert not [secret for secret in (uri, *tokens) if secret in arguments]


@pytest.mark.parametrize("value", [None, "elsewhere:app"])
def test_the_page_is_not_started_without_its_guard(data_folder, monkeypatch, value):
    found = [] if value is None else [EntryPoint(APP_NAME, value, "mlflow.app")]
    monkeypatch.setattr(aimbot_lab.tracking.mlflow_app, "entry_points", lambda **_: found)
    with pytest.raises(ConfigurationError, match="pip install --editable"):
        ui_command(data_folder)


def test_the_guard_is_not_started_without_a_token_nor_for_a_server(data_folder, monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(ConfigurationError, match=TOKEN_VARIABLE):
        create_app()
    monkeypatch.setenv(TOKEN_VARIABLE, "")
    with pytest.raises(ConfigurationError, match=TOKEN_VARIABLE):
        create_app()
    with pytest.raises(ConfigurationError, match="http://host:5000"):
        ui_command(data_folder, tracking_uri="http://host:5000")


ONE = "/#/experiments/1/runs/a/model-metrics?workflowType=machine_learning"


def run(run_id, experiment_id="1"):
    started = datetime(2026, 1, 1, tzinfo=UTC)
    return RunSummary(run_id, "n", "e", experiment_id, "FINISHED", started, None, {}, {})


@pytest.mark.parametrize(
    ("runs", "begins", "ends"),
    [
        ([], "/#/experiments?", ""),
        ([run("a")], ONE, ONE),
        (
            [run("a"), run("b"), run("a")],
            "/#/experiments/1/runs?workflowType=machine_learning",
            "compareRunsMode=CHART&searchFilter=run_id IN ('a', 'b')",
        ),
        (
            [run("a", "1"), run("b", "7")],
            '/#/compare-experiments/s?experiments=["1","7"]&workflowType=',
            "searchFilter=run_id IN ('a', 'b')",
        ),
    ],
)
def test_runs_are_opened_at_their_charts_alone_in_their_experiments(runs, begins, ends):
    page = unquote(page_of(runs))
    assert page.startswith(begins)
    assert page.endswith(ends)
    assert page_of_experiment(run("a", "3")).startswith("/#/experiments/3/runs?")


def test_the_page_takes_an_experiment_for_one_of_training_also_an_older_one(store):
    older = store.client.create_experiment("older")
    for name in ("older", "newer"):
        tags = store.client.get_experiment(store.experiment_id(name)).tags
        assert EXPERIMENT_TAGS.items() <= tags.items()
    ((_, view),) = ((key, view) for key, view in EXPERIMENT_TAGS.items() if "View" in key)
    assert "metrics.`learning/win_rate`" in json.loads(view)["selectedColumns"]
    assert store.experiment_id("older") == older
    assert OWNER_TAG.startswith("mlflow."), "the tag of the owning process is not shown"

"""Every command that reads a run reads it from an MLflow server, whoever hands out its files.

What such a server refuses is said and kept, and its password is kept nowhere.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from mlflow_servers import HOST, OPEN, mlflow_server
from test_league_command import DUEL
from tiny_runs import Told, invoke, invoke_plainly, write

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.history import download_artifact, list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.mlflow_store import connect
from aimbot_lab.tracking.settings import TrackingSettings

POLE = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 8}}
lessons: [{name: up, completion_criteria: {threshold: 0.99, min_lesson_length: 20}}]
train: {algo: ppo, total_steps: 1024, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""
SWEEP = """
name: pole-sweep
base: pole.yaml
search: {train.learning_rate: {type: float, low: 1e-4, high: 1e-2, log: true}}
objective: {measure: win_rate, episodes: 4}
trials: 1
seeds: 1
workers: 1
confirm: {best: 0}
"""


class Lab:
    """A data folder whose runs are tracked on a server, and one of these runs."""

    def __init__(self, data: Path, uri: str, text: str = POLE) -> None:
        self.data, self.uri, self.file = data, uri, write(data, "pole.yaml", text)
        told = self("run", self.file, "--json", wanted=(0, 1))
        self.run: str = told.document["run_id"]

    def __call__(self, *words: Any, wanted: int | tuple[int, ...] = 0) -> Told:
        told: Told = invoke(self.data, *words, "--tracking-uri", self.uri, wanted=wanted)
        return told

    def artifact(self, run: str, name: str) -> Path:
        return download_artifact(DataFolder(self.data), run, name=name, tracking_uri=self.uri)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture(scope="module")
def lab(server: str, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("data"), server)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "RUN", "--episodes", 4),
        *(
            pytest.param(words, marks=pytest.mark.campaign)
            for words in (
                ("evaluate", "RUN", "--episodes", 4, "--agent", "best"),
                ("compare", "RUN", "RUN", "--episodes", 4, "-o", "OUT/page.html"),
                ("export", "RUN", "-o", "OUT/agent"),
                ("plot", "RUN", "-o", "OUT/curve.png"),
                ("explain", "RUN"),
            )
        ),
        ("runs",),
    ],
    ids=lambda words: "-".join(map(str, words[:1])),
)
def test_a_run_on_a_server_is_read(lab: Lab, words: tuple[Any, ...], tmp_path: Path) -> None:
    given = [str(word).replace("OUT", str(tmp_path)).replace("RUN", lab.run) for word in words]
    lab(*given)
    if "-o" in given:
        assert Path(given[given.index("-o") + 1]).exists()


@pytest.fixture
def names_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOST, and what has it in it, are names of this machine."""
    look_up = socket.getaddrinfo

    def found(host: Any, *rest: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if HOST in str(host) else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.mark.usefixtures("names_this_machine")
def test_a_server_is_asked_by_a_name_that_it_knows(lab: Lab, tmp_path: Path) -> None:
    named = lab.uri.replace("127.0.0.1", HOST)
    told = invoke(tmp_path, "runs", "--tracking-uri", named, "--json").document
    assert lab.run in [run["run_id"] for run in told]
    unnamed = lab.uri.replace("127.0.0.1", f"other-{HOST}")
    told = invoke(tmp_path, "runs", "--tracking-uri", unnamed, wanted=1)
    assert told.said.strip() == (
        f"tracking store {unnamed}: the server refuses (403): Invalid Host header - possible DNS "
        "rebinding attack detected; start it with --allowed-hosts NAME:PORT, as the address names "
        "it"
    )


@pytest.mark.parametrize("where", ["served", pytest.param("in place", marks=pytest.mark.campaign)])
def test_a_run_begins_with_the_agent_of_a_run_on_a_server_and_is_resumed_and_deleted(
    lab: Lab, tmp_path: Path, where: str
) -> None:
    if where == "in place":
        lab = Lab(tmp_path, lab.uri, f"{POLE}tracking: {{experiment: {OPEN}}}\n")
        run = connect(DataFolder(tmp_path), choose_address(DataFolder(tmp_path), explicit=lab.uri))
        assert f"/{OPEN}/" in run.client.get_run(lab.run).info.artifact_uri
        lab("evaluate", lab.run, "--episodes", 4, "--agent", "best", "--no-baselines")
    begun = lab("run", lab.file, "--init-from", lab.run, "--json", wanted=1).document["run_id"]
    assert json.loads(lab.artifact(begun, "start/agent.json").read_text())["about"]
    lab("resume", begun, "--set", "train.total_steps=2048", wanted=1)
    assert json.loads(lab.artifact(begun, "agent/last/agent.json").read_text())
    lab("delete", begun, "--yes")
    listed = list_runs(DataFolder(lab.data), tracking_uri=lab.uri)
    assert begun not in {run.run_id for run in listed}


@pytest.mark.campaign
def test_a_copy_of_an_artifact_is_gone_when_the_command_has_ended(lab: Lab, tmp_path: Path) -> None:
    words = ["export", lab.run, "-o", tmp_path / "agent", "--tracking-uri", lab.uri]
    subprocess.run(
        [sys.executable, "-m", "aimbot_lab", *words, "--data-dir", lab.data],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "agent"]


def test_an_artifact_that_is_read_again_is_one_copy(lab: Lab) -> None:
    first, again = (lab.artifact(lab.run, "agent/last") for _ in range(2))
    assert first == again == lab.artifact(lab.run, "agent/last/agent.json").parent
    assert {path.name for path in first.iterdir()} == {"agent.json", "agent.safetensors"}


@pytest.mark.campaign
def test_self_play_on_a_server_has_its_snapshots_and_replays(server: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, server, DUEL)
    words = (lab.run, "--games", 4, "--snapshots", 2, "--difficulty", 1, "--json")
    league = lab("league", *words).document
    assert {player["name"] for player in league["players"]} >= {"snapshot-000000", "last"}
    lab("record", lab.run, "--against", "first", "-o", tmp_path / "match.json")
    for kept in [tmp_path / "match.json", *lab.artifact(lab.run, "replays").glob("*.json")]:
        assert invoke_plainly("replay", kept, "--json").document["decisions"]


def test_what_a_server_refuses_of_a_deleted_experiment_arrives_once_that_is_restored(
    lab: Lab,
) -> None:
    folder, told = DataFolder(lab.data), Queue[str]()
    store = connect(folder, choose_address(folder, explicit=lab.uri))
    settings, description = TrackingSettings(experiment="to delete"), RunDescription("n")
    tracker = open_run(folder, settings, description, tracking_uri=lab.uri, on_outage=told.put)
    store.client.delete_experiment(tracker.experiment_id)
    tracker.log_metrics(1, {"a": 1.0})
    tracker.log_text("x", "a.txt")
    outage = told.get(timeout=60)
    assert tracker.finish("FINISHED", wait_seconds=0.5).waiting
    way = f"mlflow experiments restore --experiment-id {tracker.experiment_id}"
    assert f"experiment 'to delete' is deleted in {lab.uri}; restore it: " in outage
    assert way in outage
    assert way in lab("runs").said
    store.client.restore_experiment(tracker.experiment_id)
    assert "could not be delivered" not in lab("runs").said
    run = store.client.get_run(tracker.run_id)
    assert (run.info.status, run.data.metrics) == ("FINISHED", {"a": 1.0})
    assert lab.artifact(tracker.run_id, "a.txt").read_text() == "x"


def test_files_that_a_server_keeps_on_s3_wait_alone_and_a_reader_is_told_the_package(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    folder = DataFolder(lab.data)
    store = connect(folder, choose_address(folder, explicit=lab.uri))
    store.client.create_experiment("far", artifact_location="s3://none/x")
    settings, description = TrackingSettings(experiment="far"), RunDescription("n")
    tracker = open_run(folder, settings, description, tracking_uri=lab.uri)
    tracker.log_metrics(1, {"a": 1.0})
    tracker.log_text("x", "agent/last/agent.json")
    tracker.log_metrics(2, {"a": 2.0})
    assert tracker.finish("KILLED").waiting == 1
    run = store.client.get_run(tracker.run_id)
    assert (run.info.status, run.data.metrics) == ("KILLED", {"a": 2.0})
    said = lab("evaluate", tracker.run_id, wanted=1).said
    assert "pip install boto3" in said
    assert "still trains" not in said
    assert "was stopped" not in said
    assert f"run {tracker.run_id}: 1 tracked entry" in lab("runs").said
    folder.run_folder(tracker.run_id).rename(lab.data / "given-up")


PASSWORD = "password1234567"


@pytest.fixture
def guarded(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a proxy that lets only `admin` with PASSWORD on to the server."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, "")
    login = "Basic " + b64encode(f"admin:{PASSWORD}".encode()).decode()

    class Proxy(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length) if length else None
            names = ("Content-Type", "Accept")
            headers = {name: self.headers[name] for name in names if name in self.headers}
            method = self.command
            asked = urllib.request.Request(server + self.path, body, headers, method=method)
            status, answer = 401, b"not logged in"
            if self.headers.get("Authorization") == login:
                try:
                    with urllib.request.urlopen(asked) as response:
                        status, answer = response.status, response.read()
                except urllib.error.HTTPError as error:
                    status, answer = error.code, error.read()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}"
        proxy.shutdown()


def with_password(address: str) -> str:
    return address.replace("//", f"//admin:{PASSWORD}@")


def files_with_the_password(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_the_password_of_a_server_is_kept_nowhere_and_asked_for_by_its_names(
    guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, folder = tmp_path / "data", DataFolder(tmp_path / "data")
    file = write(tmp_path, text=f"{POLE}tracking: {{uri: '{with_password(guarded)}'}}\n")
    told = invoke(data, "run", file, "--json", wanted=1)
    assert PASSWORD not in told.output + told.said
    run = told.document["run_id"]
    assert files_with_the_password(data) == []

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "")
    more = ("resume", run, "--set", "train.total_steps=2048")
    said = invoke(data, *more, wanted=1).said
    assert "(401); set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD" in said
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "admin")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    assert invoke(data, *more, "--json", wanted=1).document["steps"] >= 2048
    assert files_with_the_password(data) == []
    sink = connect(folder, choose_address(folder, explicit=guarded))
    assert PASSWORD not in str(sink.client.get_run(run))
    for name in ("resolved.yaml", "curriculum.yaml"):
        copy = download_artifact(folder, run, name=name, tracking_uri=guarded)
        assert PASSWORD not in copy.read_text()


def test_what_waits_for_a_server_with_a_password_is_delivered_by_whoever_knows_it(
    guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, uri = DataFolder(tmp_path), with_password(guarded)
    tracker = open_run(folder, TrackingSettings(), RunDescription("n"), tracking_uri=uri)
    tracker.log_metrics(1, {"a": 1.0})
    monkeypatch.setattr(tracker._sender._sink, "send", refuse_all)  # type: ignore[attr-defined]
    tracker.finish("FINISHED", wait_seconds=0.1)
    said = invoke(tmp_path, "runs").said
    assert f"run {tracker.run_id}: " in said
    assert "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD" in said
    said = invoke(tmp_path, "runs", "--tracking-uri", uri).said
    assert "could not be delivered" not in said
    assert PASSWORD not in said
    assert list(folder.runs.iterdir()) == []


def refuse_all(_: object) -> None:
    raise StoreError("the store is down")


@pytest.mark.campaign
def test_a_sweep_tracks_its_trials_on_a_server_and_keeps_no_password_of_it(
    guarded: str, tmp_path: Path
) -> None:
    write(tmp_path, "pole.yaml", POLE)
    uri, data = with_password(guarded), tmp_path / "data"
    sweep = write(tmp_path, "sweep.yaml", f"{SWEEP}tracking: {{uri: '{uri}'}}\n")
    told = invoke(data, "sweep", "start", sweep, "--json")
    assert PASSWORD not in told.output + told.said
    assert Path(told.document["best_file"]).is_file()
    assert files_with_the_password(data) == []
    listed = list_runs(DataFolder(data), tracking_uri=uri)
    below = [run for run in listed if run.tags.get("lab.sweep") == "pole-sweep"]
    assert {run.status for run in below} == {"FINISHED", "FAILED"}
    sweep_id = told.document["run_id"]
    (trial,) = (run for run in below if run.tags.get("mlflow.parentRunId") == sweep_id)
    assert trial.status == "FINISHED"
    invoke(data, "delete", sweep_id, "--yes", "--tracking-uri", uri)

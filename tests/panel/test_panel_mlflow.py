"""Who gets at the runs over MLflow's page, which the panel and `aimbot-lab ui` start alike."""

import asyncio
import http.client
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest
from browser_page import MS, Browser, needs_chromium
from panel_server import Answer

from aimbot_lab.cli.commands import pages
from aimbot_lab.panel.server.lab import MlflowPage
from aimbot_lab.panel.server.messages import Loader
from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.mlflow_store import MlflowStore, connect

AGENT = "agent/last/agent.json"
UPLOAD = "/ajax-api/2.0/mlflow/upload-artifact?run_uuid={run}&path="
EXPERIMENTS = "/api/2.0/mlflow/experiments/search?max_results=9"
JSON = {"Content-Type": "application/json"}


class Served(NamedTuple):
    address: str  # of the run's page, with the token
    run: str
    process: psutil.Process
    folder: DataFolder
    store: MlflowStore

    @property
    def token(self) -> str:
        return urlsplit(self.address).path.strip("/")

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(self, path: str, body: bytes | None = None, *, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=300.0)
        try:
            connection.request("GET" if body is None else "POST", path, body, dict(headers))
            return Answer(connection.getresponse())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = DataFolder(tmp_path_factory.mktemp("here") / "data")
    folder.create()
    store = connect(folder, embedded_address(folder))
    run = store.client.create_run(store.experiment_id("walks"), run_name="first").info.run_id
    store.client.log_text(run, "of the owner", AGENT)
    store.client.log_text(run, "hello from the owner", "notes.txt")
    store.client.set_terminated(run)
    page = MlflowPage(folder, tracking_uri=None, loader=Loader())
    address = asyncio.run(page.address_of(run))
    assert page._process is not None
    assert page._process.stdin is not None
    try:
        yield Served(address, run, psutil.Process(page._process.pid), folder, store)
    finally:
        page._process.stdin.close()
        page._process.wait()


def attacks(run: str, folder: Path) -> list[tuple[str, bytes | None]]:
    """What reads or writes where nobody asks for a token."""
    elsewhere = json.dumps({"name": "evil", "artifact_location": folder.as_uri()}).encode()
    return [
        (UPLOAD.format(run=run) + AGENT, b"of another"),
        (UPLOAD.format(run=run) + "new.txt", b"of another"),
        ("/api/2.0/mlflow/experiments/create", elsewhere),
        ("/api/2.0/mlflow/runs/delete", json.dumps({"run_id": run}).encode()),
        ("/graphql", b"{}"),
        ("/v1/traces", b""),
        (EXPERIMENTS, None),
        (f"/get-artifact?run_uuid={run}&path={AGENT}", None),
        ("/", None),
        ("//health", None),
        ("/static-files/index.html", None),
        ("http://127.0.0.1/version", None),
    ]


@pytest.mark.parametrize("way", ["nothing", "path", "bearer", "cookie", "query", "host"])
def test_without_the_token_nothing_is_read_or_written(served: Served, way: str) -> None:
    token = served.token
    given = {
        "bearer": {"Authorization": f"Bearer {token[:-1]}"},
        "cookie": {"Cookie": f"token={token}", "Origin": f"http://{served.host}"},
        "host": {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
    }.get(way, {})
    for path, body in attacks(served.run, served.folder.root / "elsewhere"):
        where = f"/{token[:-1]}{path}" if way == "path" else path
        where += f"{'&' if '?' in path else '?'}token={token}" if way == "query" else ""
        answer = served.ask(where, body, headers={**JSON, **given})
        assert answer.status == 401, (where, answer.text)
        assert "MLFLOW_TRACKING_TOKEN" in answer.text
        assert token not in answer.text
        assert answer.headers["referrer-policy"] == "no-referrer"
    artifacts = {file.name: file for file in served.folder.artifacts.rglob("*") if file.is_file()}
    assert {"agent.json", "notes.txt"} == set(artifacts)
    assert artifacts["agent.json"].read_text() == "of the owner"
    assert not (served.folder.root / "elsewhere").exists()
    assert {e.name for e in served.store.client.search_experiments()} == {"Default", "walks"}


def test_a_program_of_the_owner_brings_the_token_as_mlflow_client_does(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", served.token)
    client = MlflowClient(f"http://{served.host}")
    client.set_tag(served.run, "by", "a program")
    assert served.store.client.get_run(served.run).data.tags["by"] == "a program"


@pytest.mark.parametrize("origin", ["null", "http://127.0.0.1:1", "http://evil.example"])
def test_pages_of_other_origins_do_nothing_even_with_the_token(served: Served, origin: str) -> None:
    with_token = f"/{served.token}"
    for path, body in ((EXPERIMENTS, None), (UPLOAD.format(run=served.run) + "tab.txt", b"x")):
        refused = served.ask(with_token + path, body, headers={"Origin": origin})
        assert refused.status == 403
        assert "access-control-allow-origin" not in refused.headers
    assert not list(served.folder.artifacts.rglob("tab.txt"))
    own = served.ask(with_token + EXPERIMENTS, headers={"Origin": f"http://{served.host}"})
    assert own.status == 200
    assert own.headers["referrer-policy"] == "no-referrer"


def test_the_token_is_no_argument_and_no_other_port_is_open(served: Served) -> None:
    processes = [served.process, *served.process.children(recursive=True)]
    assert not [process for process in processes if served.token in " ".join(process.cmdline())]
    open_at = {
        (connection.laddr.ip, connection.laddr.port)
        for process in processes
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert open_at == {("127.0.0.1", int(served.host.partition(":")[2]))}


@needs_chromium
def test_the_page_works_for_its_owner_and_asks_for_nothing_without_the_token(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    context: Any = browser._browser.new_context()
    context.set_default_timeout(MS)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    (entrance := tmp_path / "open.html").write_text(
        pages.REDIRECT.format(address=served.address.replace("model-metrics", "artifacts"))
    )
    page.goto(entrance.as_uri())
    page.get_by_text("notes.txt").click()
    page.get_by_text("hello from the owner").wait_for()
    page.get_by_role("button", name=re.compile("menu|dropdown", re.I)).first.click()
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("renamed")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="renamed").wait_for()
    assert context.cookies() == []
    context.close()
    assert served.store.client.get_run(served.run).info.run_name == "renamed"
    ours = (f"http://{served.host}/{served.token}/", "blob:", "data:", entrance.as_uri())
    assert [address for address in asked if not address.startswith(ours)] == []

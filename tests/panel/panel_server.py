"""A panel that runs in this process, and how a page or an attacker talks to it."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leash import leashed
from websockets.sync.client import ClientConnection, connect

from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.serve import Door, listening_socket, panel_server
from aimbot_lab.panel.server.trainings import PROGRAM
from aimbot_lab.tracking.data_folder import DataFolder

TOKEN = "token-of-the-tests-0123456789-abcdef"
SECONDS = 300.0  # that anything may take on a busy machine


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()


class PanelUnderTest:
    def __init__(self, lab: Lab, door: Door) -> None:
        self.lab, self.door = lab, door
        self.host = f"127.0.0.1:{door.port}"
        self.origin = f"http://{self.host}"
        self.entrance = f"{self.origin}/?token={door.token}"
        self.cookie = {"Cookie": f"{door.cookie}={door.token}"}

    def http(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=SECONDS)
        try:
            connection.request(
                method, path, body, dict(self.cookie if headers is None else headers)
            )
            return Answer(connection.getresponse())
        finally:
            connection.close()

    @contextmanager
    def socket(self, query: str = "", **headers: str) -> Iterator[ClientConnection]:
        """A socket such as a program has, with another `query` and `headers` where given."""
        given = {**self.cookie, "Origin": self.origin, **headers}
        given = {name: value for name, value in given.items() if value}
        address = f"ws://{self.host}/socket{query}"
        with connect(address, additional_headers=given, open_timeout=SECONDS) as socket:
            yield socket

    @contextmanager
    def page(self) -> Iterator["Page"]:
        with self.socket() as socket:
            yield Page(socket)


class Page:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.told: list[dict[str, Any]] = []  # and not yet looked at

    def ask(self, part: str, kind: str, **body: Any) -> Any:
        """The answer's body; a refusal raises AssertionError."""
        answer = self.asked(part, kind, **body)
        assert answer["kind"] != "error", answer["body"]["message"]
        return answer["body"]

    def refused(self, part: str, kind: str, **body: Any) -> str:
        answer = self.asked(part, kind, **body)
        assert answer["kind"] == "error", answer
        return str(answer["body"]["message"])

    def asked(self, part: str, kind: str, **body: Any) -> dict[str, Any]:
        self._number += 1
        message = {"v": 1, "id": self._number, "part": part, "kind": kind, "body": body}
        self._socket.send(json.dumps(message))
        while True:
            found = self._receive()
            if found.get("reply") == self._number:
                return found
            self.told.append(found)

    def wait_for(self, part: str, kind: str, holds: Any = lambda body: True) -> Any:
        """The first body of that kind that `holds`, of those told or to come."""
        while True:
            for place, found in enumerate(self.told):
                if (found["part"], found["kind"]) == (part, kind) and holds(found["body"]):
                    del self.told[place]
                    return found["body"]
            self.told.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._socket.recv(timeout=SECONDS))
        return found


@contextmanager
def running_panel(data: Path, *, here: Path, port: int = 0) -> Iterator[PanelUnderTest]:
    """A panel for the runs in `data`, started in the folder `here`."""
    lab = Lab(DataFolder(data), here=here)
    lab.trainings.program = leashed(*PROGRAM)
    with listening_socket("127.0.0.1", port) as listener:
        door = Door("127.0.0.1", listener.getsockname()[1], TOKEN)
        ready = threading.Event()
        server = panel_server(lab, door, ready.set)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            assert ready.wait(SECONDS)
            yield PanelUnderTest(lab, door)
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            assert not thread.is_alive()

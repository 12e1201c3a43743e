"""32 pages that watch a run which trains, one of them slow: what the panel's memory does.

`python tests/panel/many_pages.py FOLDER SECONDS` writes a JSON document. The panel, the training
and this are three processes; half of the pages look at Training, the others at Watch.
"""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from leash import leashed
from websockets import ConnectionClosed
from websockets.asyncio.client import ClientConnection, connect

from aimbot_lab.panel.server.serve import Door

PAGES = 32
SLOW = 2  # the page at Watch that reads slowly
BEGIN_SECONDS = 120.0  # until every page has been shown something, at most
BUFFER = 2**14  # bytes
SLOW_SECONDS = 0.15  # that the slowest page takes for a message
SAMPLE_SECONDS = 5.0
CURRICULUM = """
name: endless
env: {num_envs: 64, time_limit: 5.0}
lessons:
  - name: only
    targets: {goto: 1}
    completion_criteria: {threshold: 0.999, min_lesson_length: 1000000}
train:
  total_steps: 1_000_000_000
  n_steps: 64
  batch_size: 1024
  torch_threads: 1
  network: {layers: [32]}
"""


@dataclass
class Page:
    """An open page, and how much it was shown."""

    socket: ClientConnection
    number: int = 0
    frames: int = 0
    cuts: int = 0  # how often the connection ended

    async def ask(self, part: str, kind: str, **body: Any) -> None:
        self.number += 1
        message = {"v": 1, "id": self.number, "part": part, "kind": kind, "body": body}
        await self.socket.send(json.dumps(message))

    async def read(self, pause: float, reopen: "Callable[[Page], Awaitable[None]]") -> None:
        """Read what it is shown, with a pause after each message; open anew where it is cut off."""
        while True:
            with suppress(ConnectionClosed):
                async for text in self.socket:
                    self.frames += json.loads(text)["kind"] in ("scene", "state")
                    await asyncio.sleep(pause)
            self.cuts += 1
            await reopen(self)


def panel_address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    for line in process.stderr:
        for word in line.split():
            if word.startswith("http://"):
                return word
    raise SystemExit("the panel did not begin")


async def watched(address: str, seconds: float, server: psutil.Process) -> dict[str, Any]:
    """What becomes of the pages and the panel's memory in so many seconds."""
    origin, token = address.split("/?token=")
    host = origin.removeprefix("http://")
    name = Door("127.0.0.1", int(host.rsplit(":", 1)[1]), token).cookie
    headers = {"Cookie": f"{name}={token}", "Origin": origin}
    async with asyncio.TaskGroup() as group:
        pages = [Page(await opened(host, headers)) for _ in range(PAGES)]
        run = await training(pages[0])

        async def look(page: Page) -> None:
            number = pages.index(page)
            body = {"run": run} if number % 2 else {"run": run, "agent": ""}
            await page.ask("training" if number % 2 else "watch", "watch", **body)

        async def reopen(page: Page) -> None:
            page.socket = await opened(host, headers)
            await look(page)

        for page in pages:
            await look(page)
        tasks = [
            group.create_task(page.read(SLOW_SECONDS if number == SLOW else 0.0, reopen))
            for number, page in enumerate(pages)
        ]
        until = time.monotonic() + BEGIN_SECONDS  # in which libraries load and an agent is shown
        while not all(page.frames for page in pages) and time.monotonic() < until:
            await asyncio.sleep(0.1)
        before = [page.frames for page in pages]
        spent = sum(server.cpu_times()[:2])
        samples = await sampled(server, seconds)
        spent = sum(server.cpu_times()[:2]) - spent
        counts = [page.frames - earlier for page, earlier in zip(pages, before, strict=True)]
        cuts = [page.cuts for page in pages]
        for task in tasks:
            task.cancel()
        for page in pages:
            await page.socket.close()
    return {
        "samples_mb": samples,
        "processor": spent / seconds,  # of one core
        "slowest": counts.pop(SLOW),
        "others": sorted(counts),
        "cuts": cuts,
    }


async def opened(host: str, headers: dict[str, str]) -> ClientConnection:
    """A socket that buffers little, so that a slow page soon holds the server up.

    It sends no pings: answers to them would wait behind what is not read yet.
    """
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    plain.connect((host.split(":", maxsplit=1)[0], int(host.split(":")[1])))
    address, limits = f"ws://{host}/socket", {"max_queue": 2, "ping_interval": None}
    return await connect(address, sock=plain, additional_headers=headers, **limits)


async def sampled(server: psutil.Process, seconds: float) -> list[float]:
    """The server's memory in MB, every few seconds."""
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(min(SAMPLE_SECONDS, seconds / 4))
        found.append(round(server.memory_info().rss / 2**20, 1))
    return found


async def training(page: Page) -> str:
    """The id of the run that trains."""
    await page.ask("training", "list")
    async for text in page.socket:
        message = json.loads(text)
        runs = message["body"]["runs"] if message["kind"] == "runs" else []
        if found := [one["run_id"] for one in runs if one["state"] == "trains"]:
            await page.ask("training", "leave")
            return str(found[0])
    raise SystemExit("the panel is gone")


@contextmanager
def running(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`aimbot-lab` with `words`, as long as the block is open and this process lives."""
    place = ["--data-dir", str(folder / "data")]
    with subprocess.Popen(
        leashed(sys.executable, "-m", "aimbot_lab", *words, *place),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def main(folder: Path, seconds: float) -> None:
    """Start the panel in `folder`, watch for so many seconds, and write what was found."""
    (folder / "endless.yaml").write_text(CURRICULUM)
    with (
        running(folder, "run", "endless.yaml") as trained,
        running(folder, "panel", "--no-browser", "--port", "0") as process,
    ):
        threading.Thread(target=trained.communicate, daemon=True).start()
        server = psutil.Process(process.pid)
        found = asyncio.run(watched(panel_address(process), seconds, server))
    print(json.dumps(summary(found)))  # noqa: T201


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """The memory of the third and the last quarter, in MB, and the frames of the pages."""
    samples = found["samples_mb"]
    quarter = max(len(samples) // 4, 1)
    return {
        "third_mb": median(samples[-2 * quarter : -quarter]),
        "last_mb": median(samples[-quarter:]),
        "slowest": found["slowest"],
        "fewest_of_others": found["others"][0],
        "most": found["others"][-1],
        **found,
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))

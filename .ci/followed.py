"""Which files of the project a reader passes through on three ways, found by following them.

`python .ci/followed.py` trains a tiny curriculum, moves a slider of it on the panel, and prints, in
the order in which each is entered first, the files of which a function runs

- from the command `aimbot-lab run` to the end of the first update of the weights,
- from the end of an episode to the call of MLflow that stores its numbers,
- from a message of the panel that moves a weight to the mix that the world draws from.

What modules do as they are imported does not count, nor what compiled kernels call.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "aimbot_lab"
UPDATE = "HybridPPO.train"
EPISODE = ("ended_episodes", "LessonCallback._count", "ReportCallback._report", "deliver_batch")
SLIDER = ("ControlChannel.requests", "WeightChange.from_json", "LiveWeights.change")
PASSED = (
    "WorldVecEnv.step_wait",
    "KernelWorld.step",
)  # on the way of an episode, by themselves alone
CURRICULUM = """
name: followed
lessons: [{name: one, targets: {goto: 1, attack: 1}}]
env: {num_envs: 64, threads: 1, time_limit: 1.0}
train: {algo: hybrid_ppo, total_steps: 100_000_000, n_steps: 8, batch_size: 256}
"""
SECONDS = 600.0


class Way:
    """The files that are entered while one of the functions `inside` runs, in that order.

    Of those `passed` their own files count, and not what they call. Without any it is all that the
    main thread enters `until` that function has ended.
    """

    def __init__(
        self, inside: Collection[str] = (), *, passed: Collection[str] = (), until: str = ""
    ) -> None:
        self.files: dict[str, str] = {}  # with the function that was entered first
        self.stack: list[str] = []  # of these the ones that wait for each other at its end
        self._inside, self._passed, self._until = inside, passed, until
        self._over = False
        self.unseen = {*inside, *passed, *([until] if until else [])}  # a renamed one stays in it
        self._depths: dict[int, int] = {}  # by thread

    def enter(self, file: str, name: str) -> None:
        """A function begins."""
        self.unseen.discard(name)
        thread = threading.get_ident()
        depth = self._depths.get(thread, 0) + (name in self._inside)
        self._depths[thread] = depth
        on_way = depth > 0 if self._inside else thread == threading.main_thread().ident
        on_way = on_way or name in self._passed
        if on_way and not self._over:
            self.files.setdefault(file, name)

    def leave(self, name: str, frame: FrameType) -> None:
        """A function ends, in `frame`."""
        thread = threading.get_ident()
        self._depths[thread] = self._depths.get(thread, 0) - (name in self._inside)
        if name == self._until and not self._over:
            self._over = True
            self.stack = [*dict.fromkeys(_files_on(frame))][::-1]


class Follower:
    """Has each function of the package that runs, in any thread, noted by `ways`."""

    def __init__(self, *ways: Way) -> None:
        self._ways = ways
        self._known: dict[CodeType, tuple[str, str] | None] = {}

    def start(self) -> None:
        """Follow this thread, and those that begin from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> None:
        """Follow no more."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = _place(code)
        if (known := self._known[code]) is None or _is_importing(frame):
            return
        for way in self._ways:
            if event == "call":
                way.enter(*known)
            else:
                way.leave(known[1], frame)


def _place(code: CodeType) -> tuple[str, str] | None:
    """File and name of a function of the package; None: of others, or what makes a class."""
    path, name = Path(code.co_filename), code.co_qualname
    is_function = not name.startswith("<") and "__qualname__" not in code.co_names[:3]
    if not (is_function and path.is_relative_to(PACKAGE)):
        return None
    return path.relative_to(PACKAGE).as_posix(), name


def _files_on(frame: FrameType | None) -> Iterator[str]:
    """The files of the functions on the stack, from the innermost out."""
    while frame is not None:
        if (known := _place(frame.f_code)) is not None:
            yield known[0]
        frame = frame.f_back


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def train(folder: Path) -> None:
    """Train, and write what was followed, until another process stops the run."""
    from aimbot_lab.entry import main

    update = Way(until=UPDATE)
    episode = Way(EPISODE, passed=PASSED)
    slider = Way(SLIDER)
    sys.argv = ["aimbot-lab", "run", str(folder / "followed.yaml"), "--data-dir", str(folder)]
    follower = Follower(update, episode, slider)
    follower.start()
    try:
        main()
    except SystemExit:
        follower.stop()
        stack = dict.fromkeys(update.stack, "")
        unseen = [*update.unseen, *episode.unseen, *slider.unseen]
        assert not unseen, f"no function of these names runs any more: {', '.join(unseen)}"
        found = [update.files, stack, episode.files, slider.files]
        (folder / "followed.json").write_text(json.dumps(found))


class Socket:
    """The socket of a page that asks and does not listen."""

    async def send_text(self, text: str) -> None:
        """Hear nothing."""


async def move(folder: Path) -> dict[str, str]:
    """The files that a page's message passes in the panel; the run is stopped then."""
    from aimbot_lab.panel.server.lab import Lab, Session, do
    from aimbot_lab.panel.server.serve import PARTS
    from aimbot_lab.tracking.data_folder import DataFolder

    lab = Lab(DataFolder(folder), here=folder)
    session: Any = Session(Socket(), lab, partial(do, parts=PARTS))  # type: ignore[arg-type]
    lines = await lab.run_list.look()
    run = next(line.run_id for line in lines if line.state == "trains")

    def message(kind: str, **body: Any) -> str:
        asked = {"v": 1, "id": 1, "part": "training", "kind": kind, "body": {"run": run, **body}}
        return json.dumps(asked)

    way = Way(("Session._answer", "ControlChannel.send"))
    follower = Follower(way)
    follower.start()
    await session._answer(message("weights", target="goto", moves=[[3, 0.5]], lock=[], unlock=[]))
    follower.stop()
    assert "error" not in session._waiting[0], session._waiting[0]
    await session._answer(message("stop"))
    return way.files


def show(title: str, files: dict[str, str]) -> None:
    """Print the files of a way, in their order."""
    lines = [f"{title}: {len(files)} files"]
    for number, (file, name) in enumerate(files.items(), start=1):
        lines.append(f"  {number:3}  {file:56}{name}")
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> None:
    """Follow all three ways."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "followed.yaml").write_text(CURRICULUM)
        child = subprocess.Popen([sys.executable, __file__, place], cwd=ROOT)
        try:
            until = time.monotonic() + SECONDS
            while not [*folder.glob("runs/*/live/*"), *folder.glob("runs/*/checkpoints/run.json")]:
                assert child.poll() is None, "nothing trains"
                assert time.monotonic() < until, "nothing trains yet"
                time.sleep(0.5)
            time.sleep(20.0)  # in which episodes end, and their numbers are stored
            panel = asyncio.run(move(folder))
            child.wait(SECONDS)
        finally:
            child.kill()
        update, stack, episode, slider = json.loads((folder / "followed.json").read_text())
    show("run to the first update", update)
    show("of these on the stack as the update ends", stack)
    show("episode to MLflow", episode)
    show("slider to mix", {**panel, **slider})


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) > 1:
        train(Path(sys.argv[1]))
    else:
        main()

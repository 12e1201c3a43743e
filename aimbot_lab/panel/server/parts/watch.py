"""A run's agent plays on the page; where its world is code that the run names, in its own process.

The code may print, hang, or end its process without harm to the panel. The process is asked for
one scene after the other, and ends when it is not asked for a while.
"""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import TRUST, NamedCode, require_allowed
from aimbot_lab.panel.server.lab import Ask, Lab, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import AGENTS, STORE, Done, Feed, failure_words, in_thread
from aimbot_lab.panel.server.parts.runs import OfAgent, listing
from aimbot_lab.panel.server.run_list import Runs
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import RunFolder, run_folders

if TYPE_CHECKING:
    from aimbot_lab.panel.server.watched_agent import WatchedAgent

ANSWER_SECONDS = 120.0  # that a scene may take, the first one with the world's start
IDLE_SECONDS = 60.0  # without a request, after which it ends


class PlayedRun(NamedTuple):
    """What is played."""

    run_id: str
    name: str  # of an agent that it saved on request; empty: its newest
    root: str  # of the data folder
    tracking_uri: str | None


class OwnProcess:
    """The play of `run` in a process in which `code` may run."""

    def __init__(self, run: PlayedRun, code: NamedCode) -> None:
        self._code = code
        self._line, theirs = Pipe()
        words = [*(sys.executable, "-P", "-m", __name__), str(theirs.fileno()), json.dumps(run)]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, TRUST: code.sha256},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._end = finalize(self, _end, self._process)

    def decide(self, status: Any) -> dict[str, Any]:
        """The scene after one more decision, where the run stands as `status` says.

        Raises LabError where there is none to show, and where the process has ended.
        """
        try:
            self._line.send_bytes(json.dumps(status).encode())
            if not self._line.poll(ANSWER_SECONDS):
                raise self._ended(f"gave no scene within {ANSWER_SECONDS:g} s")
            answer: dict[str, Any] = json.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            code = self._process.returncode
            raise self._ended(f"ended the process that plays it (exit code {code})") from None
        if "error" in answer:
            raise LabError(answer["error"])
        return answer

    @property
    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def _ended(self, what: str) -> LabError:
        self._end()
        return LabError(f"the {self._code.shown} {what}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Run:
    """The run that is played, as `WatchedAgent` knows it; the panel tells how it stands."""

    def __init__(self, run_id: str, data_folder: DataFolder) -> None:
        self.run_id, self._data_folder = run_id, data_folder
        self.status: Any = None

    def find(self) -> RunFolder | None:
        folders = run_folders(self._data_folder)
        return next((one for one in folders if one.run_id == self.run_id), None)


def _play(line: Connection, played: PlayedRun) -> None:
    from aimbot_lab.panel.server.watched_agent import WatchedAgent

    data_folder = DataFolder(Path(played.root))
    run = _Run(played.run_id, data_folder)
    agent = None
    while line.poll(IDLE_SECONDS):
        run.status = json.loads(line.recv_bytes())
        try:
            if agent is None:
                agent = WatchedAgent(run, data_folder, uri=played.tracking_uri, name=played.name)
            answer = agent.play.decide()
        except LabError as error:
            answer = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 of the code, which begins anew
            agent, answer = None, {"error": failure_words(error)}
        line.send_bytes(json.dumps(answer).encode())


LOG = logging.getLogger(__name__)
WANTED_SECONDS = 20.0  # for which one look asks the run for its agents
WAIT_SECONDS = 1.0  # between two looks where there is nothing to show


class _Theatre:
    """The play of a run's agent, for all pages that watch it."""

    def __init__(self, lab: Lab, run_id: str, name: str) -> None:
        self._lab, self._run, self._name = lab, lab.live_run(run_id), name
        self._agent: WatchedAgent | OwnProcess | None = None
        self._deciding = threading.Lock()  # a look that was broken off decides to the end
        self._due = 0.0
        self.feed = Feed(self._look, seconds=0.0)

    async def _look(self) -> dict[str, Any]:
        """The next scene, when it is time for it; else why there is none."""
        now = time.monotonic()
        if not self._name:
            self._run.wants_agent_until = now + WANTED_SECONDS
        await asyncio.sleep(max(0.0, self._due - now))
        try:
            document = await in_thread(self._decided)
        except LabError as error:
            return self._waiting(str(error))
        except (Exception, SystemExit) as error:  # it is begun anew
            LOG.exception("what is watched failed")
            self._agent = None
            return self._waiting(failure_words(error))
        self._due = max(self._due, time.monotonic() - 1.0) + document["period"]
        return document

    def _waiting(self, why: str) -> dict[str, Any]:
        self._due = time.monotonic() + WAIT_SECONDS
        return {"waiting": why}

    def _decided(self) -> dict[str, Any]:
        self._lab.loader.need(*STORE, *AGENTS)
        with self._deciding:
            agent = self._agent
            if agent is None or (isinstance(agent, OwnProcess) and agent.is_over):
                agent = self._begun()
            if isinstance(agent, OwnProcess):
                return agent.decide(self._run.status)
            return agent.play.decide()

    def _begun(self) -> "WatchedAgent":
        """The agent, to play here. Raises LabError where it is begun in a process of its own."""
        from aimbot_lab.panel.server.watched_agent import WatchedAgent, code_of_run

        folder, uri = self._lab.data_folder, self._lab.tracking_uri
        code = code_of_run(self._run, folder, uri=uri)
        if code is None:
            self._agent = WatchedAgent(self._run, folder, uri=uri, name=self._name)
            return self._agent
        if not self._lab.may_run(code):
            require_allowed(code)
        played = PlayedRun(self._run.run_id, self._name, str(folder.root), uri)
        self._agent = OwnProcess(played, code)
        raise LabError(f"the {code.shown} is started, in a process of its own")


async def watch(session: Session, asked: OfAgent) -> Done:
    """Show an agent of a run at play, from now on."""
    lab, what = session.lab, f"watch/{asked.run}/{asked.agent}"
    line = await in_thread(lab.run_list.line, asked.run)
    if asked.agent and (line is None or asked.agent not in line.saved):
        raise ConfigurationError(f"{asked.agent}: the run has saved no such agent")

    def body(document: dict[str, Any]) -> dict[str, Any]:
        return {"run": asked.run, "agent": asked.agent, **document}

    async def keep_state() -> None:  # the run shows itself while its state is looked at
        async for _ in lab.feed_of(asked.run).follow():
            pass

    theatre = lab.kept(what, lambda: _Theatre(lab, asked.run, asked.agent))
    session.follow("watch", "scene", theatre.feed, body)
    session.go_on("watch", keep_state(), name="state")
    return Done()


WATCH = PagePart(
    name="watch",
    asks={
        "list": listing("watch"),
        "watch": Ask(OfAgent, watch, in_turn=True),
        "leave": leaving("watch"),
    },
    tells={"runs": Runs, "scene": dict[str, Any]},
)


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError, ConnectionError):  # the panel has ended
        _play(Connection(int(sys.argv[1])), PlayedRun(*json.loads(sys.argv[2])))
    os._exit(0)  # threads of the code may be at work

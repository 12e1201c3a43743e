"""A run's agent at play where its world is code that the run names: in a process of its own.

The code may print, hang, or end its process without harm to the panel. The process is asked for
one scene after the other, and ends when it is not asked for a while.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.named_code import TRUST, NamedCode
from aimbot_lab.panel.server.loading import failure_words
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import RunFolder, run_folders

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


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError, ConnectionError):  # the panel has ended
        _play(Connection(int(sys.argv[1])), PlayedRun(*json.loads(sys.argv[2])))
    os._exit(0)  # threads of the code may be at work

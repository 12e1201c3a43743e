"""A tiny training of 4 shards, and the commands that train it."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.cli.shared_project import CURRICULUM, Project
from tests.cli.tiny_runs import COMMAND

WAIT_S = 600
FILE = "tiny.yaml"
SHORTER = CURRICULUM.replace("163_840", "81_920")


class RayProject(Project):
    """A folder with the curriculum, and the commands that were begun there."""

    curriculum, wait_s = SHORTER, WAIT_S

    def begin(self, *words: str, **environment: str) -> "subprocess.Popen[str]":  # type: ignore[override]
        """`aimbot-lab` with `words`; what it says comes to `messages`."""
        with (self.path / "messages").open("w", encoding="utf-8") as messages:
            process = subprocess.Popen(
                [*COMMAND, *words],
                cwd=self.path,
                env={**self.environment(), **environment},
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
            )
        self.begun.append(process)
        return process

    @staticmethod
    def environment() -> dict[str, str]:
        """Ours, without what would change the commands."""
        ours = ("AIMBOT_LAB", "RAY_", "MLFLOW_")
        return {name: value for name, value in os.environ.items() if not name.startswith(ours)}

    @property
    def messages(self) -> str:
        """What the command begun last has said."""
        return (self.path / "messages").read_text("utf-8")

    def said(self, process: "subprocess.Popen[str]") -> tuple[str, str]:
        output, _ = process.communicate(timeout=self.wait_s)
        messages = self.messages
        assert not {"raylet", "(pid="} & set(messages.replace(",", " ").split())
        return output, messages

    def ended(self, *words: str, wanted: int = 1, **environment: str) -> dict[str, Any]:  # type: ignore[override]
        """The document of a training; by default one that spends its steps."""
        return self.document(self.begin(*words, "--json", **environment), wanted)

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Return once `done`, which must come while the command runs."""
        end = time.monotonic() + self.wait_s
        while not done():
            assert time.monotonic() < end, self.messages
            assert self.begun[-1].poll() is None, self.messages
            time.sleep(0.05)


def worker(folder: Path, rank: int) -> psutil.Process:
    """The process of that rank that trains in `folder`."""
    (found,) = [one for one in trainers(folder) if _environment(one).get("RANK") == str(rank)]
    return found


def trainers(folder: Path) -> list[psutil.Process]:
    """The processes that train in `folder`; on a cluster, they are no children of the command."""
    found = []
    for one in psutil.process_iter():
        try:
            if "AIMBOT_LAB_SHARED_RUN" in one.environ() and Path(one.cwd()) == folder:
                found.append(one)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass
    return found


def _environment(process: psutil.Process) -> Mapping[str, str]:
    try:
        return process.environ()
    except psutil.NoSuchProcess:
        return {}

"""Programs that the Python of ML-Agents' real packages runs, in environments of their own."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PYTHON = Path(os.environ.get("AIMBOT_LAB_ML_AGENTS", ROOT / ".venv-ml-agents")) / "bin" / "python"
OLD = os.environ.get("AIMBOT_LAB_ML_AGENTS_030", ROOT / ".venv-ml-agents-0.30")
OLD_PYTHON = Path(OLD) / "bin" / "python"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def ended(
    *command: object, cwd: Path = ROOT, timeout: float = 300, **given: Any
) -> "subprocess.CompletedProcess[str]":
    """A program that has ended well."""
    done = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
        **given,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done


def told_by(script: str, *arguments: object, python: Path = PYTHON, **given: Any) -> Any:
    """What a script of this folder tells in its last line."""
    done = ended(python, HERE / script, *arguments, **given)
    return json.loads(done.stdout.rpartition("\n")[2])


def learned(folder: Path, file: Path, player: Path, *options: object, **given: Any) -> str:
    """The player's log of the run `learned` of `mlagents-learn`, by a trainer file in `folder`."""
    own = "--seed=1", "--run-id=learned", "--timeout-wait=300", f"--base-port={free_port()}"
    learn = PYTHON.parent / "mlagents-learn"
    ended(learn, file, "--env", player, *own, "--env-args", *options, cwd=folder, **given)
    logs = folder / "results" / "learned" / "run_logs"
    return (logs / "Player-0.log").read_text(encoding="utf-8")

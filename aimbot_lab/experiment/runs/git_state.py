"""Which commit a training was started from."""

import subprocess
from pathlib import Path

SECONDS = 5.0  # a question to git may take, on a slow disk


def git_tags(folder: Path) -> dict[str, str]:
    """Tags with the commit that `folder` is at and whether tracked files differ from it.

    Empty where it is no repository or there is no git.
    """
    commit = _ask(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    changed = _ask(folder, "status", "--porcelain", "--untracked-files=no")
    state = {} if changed is None else {"lab.git_dirty": str(bool(changed)).lower()}
    return {"mlflow.source.git.commit": commit, "lab.git_commit": commit[:12], **state}


def _ask(folder: Path, *question: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(folder), *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

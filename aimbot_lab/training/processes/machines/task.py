"""What the launchers of a training run."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


def to_stderr(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def quieten() -> None:
    """Have torch write no warnings of its own; it looks when it is imported."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


class Task(NamedTuple):
    """What the workers run, and whom the launcher tells what."""

    command: Sequence[str]
    environment: Mapping[str, str]  # beside ours
    report: Callable[[str], None] = to_stderr
    progress: Callable[[], object] = lambda: None  # another value once there is a new checkpoint

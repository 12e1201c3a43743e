"""A lock between processes, freed by the system when its holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aimbot_lab.tracking.journal.durable import disk_error


@contextmanager
def exclusive(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock file `path` alone; waits for whoever holds it if `wait`. Not re-entrant.

    Raises StoreError where the file can't be made, the disk knows no locks, or another process
    holds it and this one does not wait.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            raise disk_error(path, error) from error
        yield

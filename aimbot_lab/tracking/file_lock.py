"""A lock between processes, freed by the system when its holder dies."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aimbot_lab.tracking.durable import disk_error


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone; waits for whoever holds it. Not re-entrant.

    Raises StoreError where the file can't be made or the disk knows no locks.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise disk_error(path, error) from error
        yield

"""Room on the disk for a run's last words, taken at its beginning."""

import os
from contextlib import suppress
from pathlib import Path

from aimbot_lab.tracking.journal.durable import disk_error, replace_file

RESERVE_NAME = "reserve"
RESERVED_BYTES = 128 * 1024  # a note of 8,000 characters, some tags, and the end


class Reserve:
    """A file in the run folder that is deleted when its room is needed."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / RESERVE_NAME

    def take(self) -> None:
        """Fill the file. Raises StoreError where the disk has no room even for that."""
        try:
            # Random, because some file systems store zeros in no room at all.
            replace_file(self._path, os.urandom(RESERVED_BYTES))
        except OSError as error:
            raise disk_error(self._path, error) from error

    def release(self) -> None:
        """Give the room back; doing so twice changes nothing."""
        with suppress(OSError):
            self._path.unlink()

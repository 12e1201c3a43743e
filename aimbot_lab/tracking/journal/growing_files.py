"""Files of a run that grow while it runs and become artifacts when it ends.

Each lies in the run folder under a folder of its own, so that what delivers the run, a dead one's
included, finds it there. What was written survives the death of the process.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from aimbot_lab.tracking.journal.durable import disk_error, replace_file
from aimbot_lab.tracking.journal.entries import FileEntry

_FOLDER = "growing"


class GrowingFiles:
    """The growing files in one run folder, written by one process."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder
        self._descriptors: dict[str, int] = {}

    def write(self, name: str, data: bytes, *, place: int) -> None:
        """Write `data` at byte `place`, or at the end of a shorter file; nothing lies behind it.

        Raises StoreError where the disk refuses.
        """
        path = growing_file(self._run_folder, name)
        try:
            if name not in self._descriptors:
                path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._descriptors[name] = os.open(path, flags, 0o600)
            descriptor = self._descriptors[name]
            at = min(place, os.fstat(descriptor).st_size)
            os.ftruncate(descriptor, at)
            rest = memoryview(data)
            while rest:
                written = os.pwrite(descriptor, rest, at)
                at, rest = at + written, rest[written:]
        except OSError as error:
            raise disk_error(path, error) from error

    def sync(self) -> None:
        """Wait until all of it is on the disk. Raises StoreError where that refuses."""
        for name, descriptor in self._descriptors.items():
            try:
                os.fsync(descriptor)
            except OSError as error:
                raise disk_error(growing_file(self._run_folder, name), error) from error

    def close(self) -> None:
        """Close all files; they stay where they are."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def growing_file(run_folder: Path, name: str) -> Path:
    """Where the growing file `name` of a run lies as long as the run is not delivered."""
    # TensorBoard takes whatever has `tfevents` in its name for a file, and so reads no such folder.
    return run_folder / _FOLDER / name.replace("tfevents", "events") / name


def detach_growing(run_folder: Path) -> None:
    """Put copies in the places of the growing files, which no descriptor of another process has.

    Raises OSError where the disk refuses.
    """
    for path in (run_folder / _FOLDER).glob("*/*"):
        if not path.name.startswith("."):
            replace_file(path, path.read_bytes())


def growing_entries(run_folder: Path) -> Sequence[FileEntry]:
    """The growing files of a run as entries of a journal."""
    folder = run_folder / _FOLDER
    files = sorted(path for path in folder.glob("*/*") if not path.name.startswith("."))
    return [FileEntry(path.relative_to(run_folder).as_posix(), "") for path in files]

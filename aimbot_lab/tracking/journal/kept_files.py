"""Copies of logged files, kept beside the journal until they are uploaded."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aimbot_lab.tracking.journal.durable import disk_error, sync_file

_FOLDER = "files"


class KeptFiles:
    """The copies in one run folder, named by their path relative to it."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder

    def keep_text(self, text: str, name: str) -> str:
        """Where `text` now lies as a file called `name`, on the disk."""
        with self._new_file(name) as path:
            path.write_text(text, encoding="utf-8", newline="")
        return self._relative(path)

    def keep_file(self, source: Path) -> str:
        """Where a copy of `source` now lies, on the disk. Raises OSError where it can't be read."""
        with (
            source.open("rb") as original,
            self._new_file(source.name) as path,
            path.open("wb") as copy,
        ):
            shutil.copyfileobj(original, copy)
        return self._relative(path)

    def path(self, kept: str) -> Path:
        """The copy that `kept` names; it is gone once it was uploaded."""
        return self._run_folder / kept

    def drop(self, kept: str) -> None:
        """Delete a copy that is no longer needed; a growing file is not a copy and stays."""
        if kept.startswith(f"{_FOLDER}/"):
            shutil.rmtree(self.path(kept).parent, ignore_errors=True)

    @contextmanager
    def _new_file(self, name: str) -> Iterator[Path]:
        """A path to write to; on the disk afterwards, or StoreError and nothing left behind."""
        # A folder of its own, because an artifact is called as its file is.
        folder = self._run_folder / _FOLDER / uuid.uuid4().hex
        try:
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir()
            yield folder / name
            sync_file(folder / name)
            sync_file(folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise disk_error(folder / name, error) from error

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._run_folder).as_posix()

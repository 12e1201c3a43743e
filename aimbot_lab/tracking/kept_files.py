"""Copies of logged files, kept beside the journal until they are uploaded."""

import shutil
import uuid
from pathlib import Path

from aimbot_lab.tracking.durable import disk_error, sync_file


class KeptFiles:
    """The copies in one run folder, named by their path relative to it."""

    def __init__(self, run_folder: Path) -> None:
        self._run_folder = run_folder

    def keep_text(self, text: str, name: str) -> str:
        """Where `text` now lies as a file called `name`, on the disk."""
        path = self._new_path(name)
        try:
            path.write_text(text, encoding="utf-8", newline="")
            self._sync(path)
        except OSError as error:
            raise disk_error(path, error) from error
        return self._relative(path)

    def keep_file(self, source: Path) -> str:
        """Where a copy of `source` now lies, on the disk. Raises OSError where it can't be read."""
        path = self._new_path(source.name)
        with source.open("rb") as original:
            try:
                with path.open("wb") as copy:
                    shutil.copyfileobj(original, copy)
                self._sync(path)
            except OSError as error:
                raise disk_error(path, error) from error
        return self._relative(path)

    def path(self, kept: str) -> Path:
        """The copy that `kept` names; it is gone once it was uploaded."""
        return self._run_folder / kept

    def drop(self, kept: str) -> None:
        """Delete a copy that is no longer needed."""
        shutil.rmtree(self.path(kept).parent, ignore_errors=True)

    def _new_path(self, name: str) -> Path:
        # A folder of its own, because an artifact is called as its file is.
        folder = self._run_folder / "files" / uuid.uuid4().hex
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise disk_error(folder, error) from error
        return folder / name

    def _sync(self, path: Path) -> None:
        sync_file(path)
        sync_file(path.parent)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._run_folder).as_posix()

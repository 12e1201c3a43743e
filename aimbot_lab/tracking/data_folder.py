"""The project's own folder: the embedded store, artifacts, and journals of running runs."""

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from aimbot_lab.foundation.errors import ConfigurationError, StoreError

FOLDER_NAME = ".aimbot-lab"
ENVIRONMENT_VARIABLE = "AIMBOT_LAB_DATA_DIR"
_PROJECT_MARKS = (".git", "pyproject.toml")
_CHOOSE_ANOTHER = f"choose another with --data-dir or {ENVIRONMENT_VARIABLE}"


@dataclass(frozen=True)
class DataFolder:
    """The paths inside a data folder; nothing exists until `create` was called."""

    root: Path  # absolute

    @property
    def database(self) -> Path:
        """The embedded store, a SQLite file."""
        return self.root / "mlflow.db"

    @property
    def artifacts(self) -> Path:
        """The folder of every run's files."""
        return self.root / "artifacts"

    @property
    def lock(self) -> Path:
        """Held while the embedded store is made or checked."""
        return self.root / "store.lock"

    @property
    def reaper_lock(self) -> Path:
        """Held while dead runs are closed."""
        return self.root / "reaper.lock"

    @property
    def runs(self) -> Path:
        """The folder of the run folders."""
        return self.root / "runs"

    def run_folder(self, run_id: str) -> Path:
        """The folder of a run that is not wholly delivered: its owner and journal."""
        return self.runs / run_id

    @property
    def tracking_uri(self) -> str:
        """Address of the embedded store."""
        return sqlite_uri(self.database)

    def create(self) -> None:
        """Make the folder where it is missing. Raises StoreError where it can't be written."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise self._unusable("no permission to write")

    def _unusable(self, reason: str) -> StoreError:
        return StoreError(f"data folder {self.root}: {reason}; {_CHOOSE_ANOTHER}")


def locate_data_folder(explicit: Path | None = None) -> DataFolder:
    """The data folder that counts here; nothing is created.

    `explicit`, else the environment variable AIMBOT_LAB_DATA_DIR, else the nearest `.aimbot-lab`
    upwards from the working directory, else `.aimbot-lab` in the nearest folder upwards that
    holds `.git` or `pyproject.toml`, else in the working directory. Raises ConfigurationError
    where that path is a file or no UTF-8, or the working directory is gone.
    """
    try:
        root = Path(os.path.abspath(os.path.expanduser(_chosen(explicit))))
    except FileNotFoundError:
        raise ConfigurationError("the working directory is gone; go to another one") from None
    if os.path.exists(root) and not os.path.isdir(root):
        raise ConfigurationError(f"data folder {root}: is a file, not a folder; {_CHOOSE_ANOTHER}")
    if not _is_unicode(root):
        raise ConfigurationError(f"data folder {root!r}: is not UTF-8; {_CHOOSE_ANOTHER}")
    return DataFolder(root)


def _chosen(explicit: Path | None) -> Path:
    if explicit is not None:
        return explicit
    if from_environment := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(from_environment)
    here = Path.cwd()
    upwards = (here, *here.parents)
    existing = (folder for folder in upwards if os.path.isdir(folder / FOLDER_NAME))
    projects = (folder for folder in upwards if _is_project(folder))
    return next(chain(existing, projects), here) / FOLDER_NAME


def _is_project(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in _PROJECT_MARKS)


def _is_unicode(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def sqlite_uri(path: Path) -> str:
    """Address of the SQLite file at the absolute `path`.

    SQLAlchemy decodes what follows `sqlite:///`, so the characters that mean something in an
    address are encoded; the others stay, because MLflow makes an (empty) folder with the name
    as it is encoded.
    """
    return "sqlite:///" + "".join(
        quote(character) if character in "%?#" or not character.isprintable() else character
        for character in str(path)
    )

"""The project's own folder: the embedded store, artifacts, and journals of running runs."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import quote

from aimbot_lab.foundation.errors import ConfigurationError, StoreError

FOLDER_NAME = ".aimbot-lab"
DATABASE_NAME = "mlflow.db"
ENVIRONMENT_VARIABLE = "AIMBOT_LAB_DATA_DIR"
_PROJECT_MARKS = (".git", "pyproject.toml")
_UNFINISHED_COPY = ".artifact.uploading.*"  # MLflow's name for one
_LEAST_ROOM = 1024 * 1024  # bytes; an empty store is about that large
_CHOOSE_ANOTHER = f"choose another with --data-dir or {ENVIRONMENT_VARIABLE}"


@dataclass(frozen=True)
class DataFolder:
    """The paths inside a data folder; nothing exists until `create` was called."""

    root: Path  # absolute

    @property
    def database(self) -> Path:
        """The embedded store, a SQLite file."""
        return self.root / DATABASE_NAME

    @property
    def artifacts(self) -> Path:
        """The folder of every run's files."""
        return self.root / "artifacts"

    @property
    def lock(self) -> Path:
        """Held while the embedded store is made or checked."""
        return self.root / "store.lock"

    @property
    def orphan_lock(self) -> Path:
        """Held while dead runs are closed."""
        return self.root / "reaper.lock"

    @property
    def code(self) -> Path:
        """The folder that notes the code that trainings began with; only its owner writes."""
        return self.root / "code"

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

    def check(self) -> None:
        """Raise ConfigurationError where it can't be made or written; leaves nothing behind."""
        try:
            with TemporaryFile(dir=_nearest_existing(self.root)) as file:
                file.write(bytes(_LEAST_ROOM))
                file.flush()
        except OSError as error:
            raise ConfigurationError(self._fault(error.strerror or str(error))) from error

    def drop_unfinished_copies(self, run_id: str) -> None:
        """Delete what a kill left of artifacts of a run that were being stored.

        They will be stored anew. Only for the process that owns the run: it alone stores them.
        """
        for path in (self.artifacts / run_id).rglob(_UNFINISHED_COPY):
            with suppress(OSError):
                path.unlink()

    def _unusable(self, reason: str) -> StoreError:
        return StoreError(self._fault(reason))

    def _fault(self, reason: str) -> str:
        return f"data folder {self.root}: {reason}; {_CHOOSE_ANOTHER}"


def locate_data_folder(explicit: Path | None = None) -> DataFolder:
    """The data folder that counts here; nothing is created.

    `explicit`, else the environment variable AIMBOT_LAB_DATA_DIR, else `.aimbot-lab` in the
    nearest folder, from the working directory upwards, that holds it already or is a project
    (has `.git` or `pyproject.toml`), else in the working directory. Raises ConfigurationError
    where that path is a file or no UTF-8, where the working directory is gone, and where
    `explicit` is the working directory and not a data folder yet.
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
        _refuse_unset(explicit)
        return explicit
    if from_environment := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(from_environment)
    here = Path.cwd()
    upwards = (folder for folder in (here, *here.parents) if _is_home(folder))
    return next(upwards, here) / FOLDER_NAME


def _refuse_unset(explicit: Path) -> None:
    # An empty path, as an unset shell variable gives it, is the same as "." once it is a Path.
    if explicit != Path() or Path.cwd().name == FOLDER_NAME or os.path.exists(DATABASE_NAME):
        return
    raise ConfigurationError(
        "--data-dir: must name a folder (got an empty text or the working directory itself, which "
        f"is not a data folder); for example --data-dir {FOLDER_NAME}"
    )


def _is_home(folder: Path) -> bool:
    return os.path.isdir(folder / FOLDER_NAME) or any(
        os.path.exists(folder / mark) for mark in _PROJECT_MARKS
    )


def _nearest_existing(path: Path) -> Path:
    for candidate in (path, *path.parents):
        try:
            os.stat(candidate)
        except FileNotFoundError:
            # A link to nowhere: nothing can be made in its place.
            if os.path.lexists(candidate):
                raise
        else:
            return candidate
    return Path(path.anchor)


def _is_unicode(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def sqlite_uri(path: Path) -> str:
    """Address of the SQLite file at the absolute `path`.

    SQLAlchemy decodes what follows `:///`, so the characters that mean something in an address
    are encoded. MLflow does not, and makes an empty folder with the name as it is encoded; it
    does so only where the address begins with `sqlite:`, so there the driver is named as well.
    """
    encoded = "".join(
        quote(character) if character in "%?#" or not character.isprintable() else character
        for character in str(path)
    )
    scheme = "sqlite" if encoded == str(path) else "sqlite+pysqlite"
    return f"{scheme}:///{encoded}"

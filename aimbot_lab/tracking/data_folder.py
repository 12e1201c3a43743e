"""Where numbers go: the data folder, MLflow's address, and why a store does not answer.

The store that counts is the one in the data folder, a database, or a tracking server. No file, page
or argument list gets its password: `***` stands there. A process that connects takes it from the
environment.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError, file_reason

FOLDER_NAME = ".aimbot-lab"
DATABASE_NAME = "mlflow.db"
FOLDER_VARIABLE = "AIMBOT_LAB_DATA_DIR"
_PROJECT_MARKS = (".git", "pyproject.toml")
_UNFINISHED_COPY = ".artifact.uploading.*"  # MLflow's name for one
_LEAST_ROOM = 1024 * 1024  # bytes; an empty store is about that large
_CHOOSE_ANOTHER = f"choose another with --data-dir or {FOLDER_VARIABLE}"


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
            raise StoreError(self._fault(file_reason(error))) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise StoreError(self._fault("no permission to write"))

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
        raise ConfigurationError(
            "the working directory was deleted; change to another one"
        ) from None
    if os.path.exists(root) and not os.path.isdir(root):
        raise ConfigurationError(f"data folder {root}: is a file, not a folder; {_CHOOSE_ANOTHER}")
    if not _is_unicode(root):
        raise ConfigurationError(f"data folder {root!r}: is not UTF-8; {_CHOOSE_ANOTHER}")
    return DataFolder(root)


def _chosen(explicit: Path | None) -> Path:
    if explicit is not None:
        # An empty path, as an unset shell variable gives it, is the same as "." once it is a Path.
        if explicit == Path() and not (
            Path.cwd().name == FOLDER_NAME or os.path.exists(DATABASE_NAME)
        ):
            raise ConfigurationError(
                "--data-dir: must name a folder (got an empty string or the working directory "
                f"itself, which is not a data folder); for example --data-dir {FOLDER_NAME}"
            )
        return explicit
    if from_environment := os.environ.get(FOLDER_VARIABLE):
        return Path(from_environment)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if os.path.isdir(folder / FOLDER_NAME) or any(
            os.path.exists(folder / mark) for mark in _PROJECT_MARKS
        ):
            return folder / FOLDER_NAME
    return here / FOLDER_NAME


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


ADDRESS_VARIABLE = "MLFLOW_TRACKING_URI"
_SERVERS = ("http", "https")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SQLITE = re.compile(r"(sqlite(?:\+\w+)?:///)(.*)")
# Scheme and user of an address, and up to the last @ before the path its password. One that is
# not an address, because a / in the password was not encoded, is recognised by its missing port.
_PASSWORD = re.compile(
    r"([a-zA-Z][\w+.-]*:/{1,2}[^\s/?#:@[]*):(?:[^\s/?#]*|(?!\d+[/?#,;])[^\s@'\"]*)@"
)
_PASSWORD_OPTION = re.compile(r"([?&]\w*password=)[^\s&#'\"]*")
_LOGIN = re.compile(r":.*@")
_LOGIN_LEFT_OUT = re.compile(r"(?<=://)[^/?#]*:\*\*\*@")
_LEFT_OUT = re.compile(r"(?<=[^/]):\*\*\*(?=@)|(?<=[?&])\w*password=\*\*\*&?")


@dataclass(frozen=True)
class TrackingAddress:
    """A store's address; `uri` may hold a password, `shown` never does."""

    uri: str
    embedded: bool

    @property
    def is_server(self) -> bool:
        """Whether it is a tracking server, reached over HTTP."""
        return urlsplit(self.uri).scheme in _SERVERS

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return without_password(self.uri)

    def require_database(self) -> None:
        """Raise ConfigurationError for the address of a SQLite file that is not there.

        For callers that only read: connecting would make one.
        """
        file = self.sqlite_file
        if file is not None and not self.embedded and not file.exists():
            raise ConfigurationError(f"tracking store {self.shown}: there is no file {file}")

    @property
    def sqlite_file(self) -> Path | None:
        """The file of a SQLite database, None for any other store."""
        found = _SQLITE.fullmatch(self.uri)
        return Path(unquote(found[2].partition("?")[0])) if found else None


def choose_address(
    data_folder: DataFolder, *, explicit: str | None = None, setting: str | None = None
) -> TrackingAddress:
    """The first that is given: `explicit`, `setting`, MLFLOW_TRACKING_URI, the embedded store.

    Raises ConfigurationError for an address that can't be used.
    """
    uri = explicit or setting or os.environ.get(ADDRESS_VARIABLE)
    if not uri:
        return embedded_address(data_folder)
    try:
        uri = checked_uri(uri)
    except ValueError as error:
        if explicit or setting:
            raise ConfigurationError(str(error)) from error
        way_back = f"{ADDRESS_VARIABLE}= (empty) means the data folder's own store"
        raise ConfigurationError(
            f"environment variable {ADDRESS_VARIABLE}: {error}; {way_back}"
        ) from error
    return TrackingAddress(_with_password(uri), embedded=uri == data_folder.tracking_uri)


def kept_address(data_folder: DataFolder, kept: str | None) -> TrackingAddress:
    """The address that was `kept` without its password; None means the embedded store."""
    if kept is None:
        return embedded_address(data_folder)
    return TrackingAddress(_with_password(kept), embedded=False)


def embedded_address(data_folder: DataFolder) -> TrackingAddress:
    """The address of the store inside `data_folder`."""
    return TrackingAddress(data_folder.tracking_uri, embedded=True)


def without_password(text: str) -> str:
    """`text` with the password of every address in it replaced by `***`."""
    return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def without_login(text: str) -> str:
    """`text`, which has one address that may be no address, without all that may be its login."""
    return _LOGIN.sub(":***@", without_password(text))


def _with_password(uri: str) -> str:
    """`uri` as it connects where `***` stands in the place of its password.

    MLFLOW_TRACKING_URI has the password, if it is the same address. Else the login is left to
    others: that at a server to MLFLOW_TRACKING_USERNAME, _PASSWORD and _TOKEN, that at a database
    to its driver.
    """
    given = os.environ.get(ADDRESS_VARIABLE, "")
    if uri == without_password(given):
        return given
    server = urlsplit(uri).scheme in _SERVERS
    return _LOGIN_LEFT_OUT.sub("", uri) if server else _LEFT_OUT.sub("", uri)


def checked_uri(uri: str) -> str:
    """`uri` with a relative SQLite path made absolute. Raises ValueError where it can't be used."""
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        reason = without_login(str(error))
        raise ValueError(f"the tracking address is not an address: {reason}") from None
    kind = parts.scheme.partition("+")[0]
    if kind not in _SERVERS + _DATABASES:
        allowed = ", ".join(f"{scheme}://" for scheme in _SERVERS + _DATABASES)
        shown = without_login(uri)
        raise ValueError(f"tracking address {shown!r} is not usable; it must begin with {allowed}")
    if kind == "sqlite":
        found = _SQLITE.fullmatch(uri)
        path = found[2] if found else ""
        if not path or path.startswith((":memory:", "file:")):
            raise ValueError(
                f"tracking address {uri!r} must name a file: sqlite:///FOLDER/mlflow.db"
            )
        return uri if path.startswith("/") else f"{sqlite_uri(Path.cwd())}/{path}"
    if not parts.hostname:
        raise ValueError(f"tracking address {without_login(uri)!r} names no host")
    try:
        _ = parts.port
    except ValueError:
        # What stands there may be a part of a password, and is not shown.
        raise ValueError(
            "the port of the tracking address is not a number from 0 to 65535 (a / or # in a "
            "password must be written as %2F or %23)"
        ) from None
    return uri


_OTHER_SCHEMA = ("out-of-date database schema", "Can't locate revision")
# urllib3: (Caused by NewConnectionError("HTTPConnection(host='a', port=1): why it failed"))
_CAUSE = re.compile(r"Caused by \w+\([\"'](?:\w+\([^)]*\): )?(.*?)[\"']\)+$")
_TIMED_OUT = re.compile(r"timed out\.? \(\w+ timeout=([\d.]+)\)")
_AUTOFLUSH = re.compile(r"^\(raised as a result of [^)]*\) ")  # advice of SQLAlchemy to us
# MLflow: ... from ADDRESS: ##### File NAME ##### why it failed
_ARTIFACT = re.compile(r"##### File (.+?) ##### (.*)")
_PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("s3", "r2", "b2"), "boto3"),
        "gs": "google-cloud-storage",
        "wasbs": "azure-storage-blob azure-identity",
        "abfss": "azure-storage-file-datalake azure-identity",
        "sftp": "paramiko pysftp",
    }
)
"""What MLflow needs to reach files, by the scheme of their address."""
_BY_THE_SERVER = ("mlflow-artifacts", "http", "https")  # which hands such files out itself
_OF_ONE_FILE = range(405, 500)  # answers that others need not get, such as 413: too large
_OF_ALL_FILES = (408, 429)
LOGIN = (
    "the server refuses the login (401); set MLFLOW_TRACKING_USERNAME and "
    "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN (no password is stored)"
)
_LOGIN_FAILED = re.compile(r"error code 401|401 Client Error")
_DATABASE_LOGIN = re.compile(r"no password supplied|password authentication failed")
_SET_ADDRESS = "; set MLFLOW_TRACKING_URI to the address with its password (none is stored)"
_FORBIDDEN = re.compile(r"error code 403 .*?Response body: '?(.*?)'?$")
_MISSING = re.compile(r"\b404\b|No such artifact|NoSuchKey|BlobNotFound")
_TAILS = (" [SQL:", " (Background on", " Response body:")


class StoreRefusedError(StoreError):
    """The store is there and will never take this entry."""


class RunRefusedError(StoreError):
    """The store is there, and takes nothing of this run until it is restored."""


class FilesHeldError(StoreError):
    """The store is there, and takes no file now, though it takes the rest."""


class NoArtifactError(FilesHeldError):
    """The files of a run are there, and this one is not among them."""


def store_error(error: Exception, address: TrackingAddress, *, refused: bool) -> StoreError:
    """`error`, which came from the store at `address`; `refused` if it will never be otherwise."""
    text = _text(error)
    if any(mark in text for mark in _OTHER_SCHEMA):
        return StoreError(
            f"tracking store {address.shown}: made by another version of MLflow; "
            f"back it up, then run `mlflow db upgrade {address.shown}`"
        )
    kind = StoreRefusedError if refused else StoreError
    return kind(f"tracking store {address.shown}: {_reason(text) or type(error).__name__}")


def file_error(error: Exception, address: TrackingAddress, place: str) -> LabError:
    """`error`, which came from the files at `place` of a run in the store at `address`."""
    if isinstance(error, LabError):
        return error
    scheme = urlsplit(place).scheme
    status = getattr(getattr(error, "response", None), "status_code", None)
    if scheme in _BY_THE_SERVER and status is None:
        return store_error(error, address, refused=False)
    reason = _reason(_text(error)) or type(error).__name__
    if isinstance(error, ImportError):
        package = _PACKAGES.get(scheme, getattr(error, "name", None))
        reason += f"; pip install {package}" if package else ""
    kind: type[StoreError] = NoArtifactError if _MISSING.search(_text(error)) else FilesHeldError
    if status in _OF_ONE_FILE and status not in _OF_ALL_FILES:
        kind = StoreRefusedError
    return kind(f"tracking store {address.shown}: files at {without_password(place)}: {reason}")


def _text(error: Exception) -> str:
    """What `error` says, in one line."""
    return _AUTOFLUSH.sub("", without_password(" ".join(str(error).split())))


def _reason(text: str) -> str:
    """The part of an error's text that a person can use."""
    if _LOGIN_FAILED.search(text):
        return LOGIN
    if _DATABASE_LOGIN.search(text):
        text += _SET_ADDRESS
    if waited := _TIMED_OUT.search(text):
        return f"no answer within {float(waited[1]):g} s"
    if quoted := _CAUSE.search(text):
        return quoted[1]
    if artifact := _ARTIFACT.search(text):
        text = f"artifact {artifact[1]}: {artifact[2]}"
    if refused := _FORBIDDEN.search(text):
        # MLflow's server may not know the name by which it was asked.
        hint = "; start it with --allowed-hosts NAME:PORT, as the address names it"
        unknown = "Invalid Host header" in refused[1]
        return f"the server refuses (403): {refused[1][:200]}{hint if unknown else ''}"
    for tail in _TAILS:
        text = text.partition(tail)[0]
    return text[:300]

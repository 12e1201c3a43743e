"""The address of the store that counts: the embedded one, a database, or a tracking server."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder, sqlite_uri

ENVIRONMENT_VARIABLE = "MLFLOW_TRACKING_URI"
_SERVERS = ("http", "https")
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SQLITE = "sqlite:///"


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
        return without_password(self.uri, uri=self.uri)


def choose_address(
    data_folder: DataFolder, *, explicit: str | None = None, setting: str | None = None
) -> TrackingAddress:
    """The first that is given: `explicit`, `setting`, MLFLOW_TRACKING_URI, the embedded store.

    Raises ConfigurationError for an address that can't be used.
    """
    uri = explicit or setting or os.environ.get(ENVIRONMENT_VARIABLE)
    if not uri:
        return embedded_address(data_folder)
    try:
        uri = checked_uri(uri)
    except ValueError as error:
        origin = "" if explicit or setting else f"environment variable {ENVIRONMENT_VARIABLE}: "
        raise ConfigurationError(f"{origin}{error}") from error
    return TrackingAddress(uri, embedded=uri == data_folder.tracking_uri)


def embedded_address(data_folder: DataFolder) -> TrackingAddress:
    """The address of the store inside `data_folder`."""
    return TrackingAddress(data_folder.tracking_uri, embedded=True)


def without_password(text: str, *, uri: str) -> str:
    """`text` with the password of `uri`, if it has one, replaced by `***`."""
    password = _split(uri).password
    return text.replace(f":{password}@", ":***@") if password else text


def checked_uri(uri: str) -> str:
    """`uri` with a relative SQLite path made absolute. Raises ValueError where it can't be used."""
    parts = _split(uri)
    kind = parts.scheme.partition("+")[0]
    if kind not in _SERVERS + _DATABASES:
        allowed = ", ".join(f"{scheme}://" for scheme in _SERVERS + _DATABASES)
        shown = without_password(uri, uri=uri)
        raise ValueError(f"tracking address {shown!r} is not usable; it must begin with {allowed}")
    if kind == "sqlite":
        return _absolute_sqlite(uri)
    if not parts.hostname:
        raise ValueError(f"tracking address {without_password(uri, uri=uri)!r} names no host")
    return uri


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError as error:
        raise ValueError(f"the tracking address is not an address: {error}") from error


def _absolute_sqlite(uri: str) -> str:
    path = uri.removeprefix(_SQLITE)
    if not uri.startswith(_SQLITE) or not path or path.startswith((":memory:", "file:")):
        raise ValueError(f"tracking address {uri!r} must name a file: {_SQLITE}FOLDER/mlflow.db")
    return uri if path.startswith("/") else f"{sqlite_uri(Path.cwd())}/{path}"

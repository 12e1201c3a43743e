"""The address of the store that counts: the embedded one, a database, or a tracking server.

No file, page or argument list gets its password: `***` stands there. A process that
connects takes it from the environment.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder, sqlite_uri

ENVIRONMENT_VARIABLE = "MLFLOW_TRACKING_URI"
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
    uri = explicit or setting or os.environ.get(ENVIRONMENT_VARIABLE)
    if not uri:
        return embedded_address(data_folder)
    try:
        uri = checked_uri(uri)
    except ValueError as error:
        if explicit or setting:
            raise ConfigurationError(str(error)) from error
        way_back = f"{ENVIRONMENT_VARIABLE}= (empty) means the data folder's own store"
        raise ConfigurationError(
            f"environment variable {ENVIRONMENT_VARIABLE}: {error}; {way_back}"
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
    given = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if uri == without_password(given):
        return given
    server = urlsplit(uri).scheme in _SERVERS
    return _LOGIN_LEFT_OUT.sub("", uri) if server else _LEFT_OUT.sub("", uri)


def checked_uri(uri: str) -> str:
    """`uri` with a relative SQLite path made absolute. Raises ValueError where it can't be used."""
    parts = _split(uri)
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


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError as error:
        reason = without_login(str(error))
        raise ValueError(f"the tracking address is not an address: {reason}") from None

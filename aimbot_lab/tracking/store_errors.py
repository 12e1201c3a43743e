"""What a store says when it fails, as one line that a person can use."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.tracking.address import TrackingAddress, without_password

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
_LOGIN = re.compile(r"error code 401|401 Client Error")
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
    if _LOGIN.search(text):
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
        return f"the server refuses (403): {refused[1][:200]}{_host_hint(refused[1])}"
    for tail in _TAILS:
        text = text.partition(tail)[0]
    return text[:300]


def _host_hint(said: str) -> str:
    """What to do where MLflow's server does not know the name by which it was asked."""
    if "Invalid Host header" not in said:
        return ""
    return "; start it with --allowed-hosts NAME:PORT, as the address names it"

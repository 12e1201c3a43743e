"""What a store says when it fails, as one line that a person can use."""

import re

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.address import TrackingAddress, without_password
from aimbot_lab.tracking.journal.delivery import StoreRefusedError

_OTHER_SCHEMA = ("out-of-date database schema", "Can't locate revision")
# urllib3: (Caused by NewConnectionError("HTTPConnection(host='a', port=1): why it failed"))
_CAUSE = re.compile(r"Caused by \w+\([\"'](?:\w+\([^)]*\): )?(.*?)[\"']\)+$")
_TIMED_OUT = re.compile(r"timed out\.? \(\w+ timeout=([\d.]+)\)")
_AUTOFLUSH = re.compile(r"^\(raised as a result of [^)]*\) ")  # advice of SQLAlchemy to us
# MLflow: ... from ADDRESS: ##### File NAME ##### why it failed
_ARTIFACT = re.compile(r"##### File (.+?) ##### (.*)")
_TAILS = (" [SQL:", " (Background on", " Response body:")


def store_error(error: Exception, address: TrackingAddress, *, refused: bool) -> StoreError:
    """`error`, which came from the store at `address`; `refused` if it will never be otherwise."""
    text = _AUTOFLUSH.sub("", without_password(" ".join(str(error).split())))
    if any(mark in text for mark in _OTHER_SCHEMA):
        return StoreError(
            f"tracking store {address.shown}: made by another version of MLflow; "
            f"back it up, then run `mlflow db upgrade {address.shown}`"
        )
    kind = StoreRefusedError if refused else StoreError
    return kind(f"tracking store {address.shown}: {_reason(text) or type(error).__name__}")


def _reason(text: str) -> str:
    """The part of an error's text that a person can use."""
    if waited := _TIMED_OUT.search(text):
        return f"no answer within {float(waited[1]):g} s"
    if quoted := _CAUSE.search(text):
        return quoted[1]
    if artifact := _ARTIFACT.search(text):
        text = f"artifact {artifact[1]}: {artifact[2]}"
    for tail in _TAILS:
        text = text.partition(tail)[0]
    return text[:300]

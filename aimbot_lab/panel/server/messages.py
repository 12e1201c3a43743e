"""What page and server say to each other: JSON documents, each with a version and a schema.

A page asks `{"v": 1, "id": 7, "part": "training", "kind": "stop", "body": {...}}`, and is answered
`{"v": 1, "reply": 7, "part": ..., "kind": ..., "body": {...}}`. What the server tells of itself has
no `reply`. A refusal has the kind `error` and says in its body's `message` why.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.shown_text import one_line, shortened

MAX_BYTES = 2**22
MAX_WORDS = 200  # characters of what is wrong
Value = TypeVar("Value")

VERSION = 1
MAX_MESSAGE = 64 * 1024  # bytes of a message from a page
STRICT = ConfigDict(extra="forbid", strict=True)
Name = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z_]+$")]
RunId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
"""Only ever looked up in a list that the server made."""


def read_document(path: Path, form: TypeAdapter[Value]) -> Value:
    """What the file at `path` says. Raises LabError where it is damaged or can't be read."""
    try:
        return form.validate_json(read_bounded(path, MAX_BYTES))
    except OSError as error:
        raise LabError(f"{path.name}: {error.strerror or error}") from error
    except (LabError, ValueError) as error:
        raise LabError(f"{path.name} is damaged: {fault_words(error)}") from error


def fault_words(error: Exception) -> str:
    """What is wrong with a document, in one line: the first of the faults that were found."""
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    return shortened(one_line(text), MAX_WORDS)


class MessageError(LabError):
    """What came from a page is no message."""


@dataclass(frozen=True, config=STRICT)
class Asked:
    """A message from a page."""

    v: Literal[1]
    id: Annotated[int, Field(ge=0)]
    part: Name
    kind: Name
    body: dict[str, Any]


@dataclass(frozen=True, config=STRICT)
class Nothing:
    """A body without anything in it."""


@dataclass(frozen=True, config=STRICT)
class Refusal:
    """Why something was not done."""

    message: str


@dataclass(frozen=True, config=STRICT)
class Done:
    """That something was done."""

    done: bool = True


def read_message(text: str) -> Asked:
    """The message in `text`. Raises MessageError where it is invalid."""
    try:
        return _ASKED.validate_json(text)
    except ValueError as error:
        raise MessageError(f"no message of this panel: {fault_words(error)}") from error


def read_body(form: type[Any], body: Mapping[str, Any]) -> Any:
    """`body` as a `form`. Raises MessageError where it is invalid."""
    try:
        # As JSON, in which a tuple is a list.
        return TypeAdapter(form).validate_json(json.dumps(body))
    except ValueError as error:
        raise MessageError(f"no such request: {fault_words(error)}") from error


def written(part: str, kind: str, body: Any, *, reply: int | None = None) -> str:
    """A message to a page; `body` is a dataclass or plain JSON values."""
    document = {"v": VERSION, "part": part, "kind": kind, "body": plain(body)}
    document |= {} if reply is None else {"reply": reply}
    try:
        return json.dumps(document, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(document), allow_nan=False)


def plain(body: Any) -> Any:
    """`body` as plain JSON values."""
    return asdict(body) if is_dataclass(body) and not isinstance(body, type) else body


def schema_of(form: type[Any]) -> dict[str, Any]:
    """The JSON schema of a body."""
    return TypeAdapter(form).json_schema(mode="serialization")


def _finite(value: Any) -> Any:
    """`value` with null for NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


_ASKED: TypeAdapter[Asked] = TypeAdapter(Asked)

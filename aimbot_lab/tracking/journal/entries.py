"""What a journal holds: one entry per call, each one JSON line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from aimbot_lab.tracking.tracker import RunStatus


@dataclass(frozen=True)
class MetricsEntry:
    """Numbers of one step; the time is kept so that sending twice stores them once."""

    step: int  # environment steps
    time_ms: int  # since 1970
    values: Mapping[str, float]


@dataclass(frozen=True)
class TagsEntry:
    """Tags to set."""

    tags: Mapping[str, str]


@dataclass(frozen=True)
class FileEntry:
    """A file to upload."""

    kept: str  # where the copy lies, relative to the run folder
    folder: str  # artifact folder, empty for the top


@dataclass(frozen=True)
class EndEntry:
    """The end of the run; only a `ResumeEntry` may follow."""

    status: RunStatus
    time_ms: int  # since 1970


@dataclass(frozen=True)
class ResumeEntry:
    """The run goes on, whether it had ended or its process had died."""

    time_ms: int  # since 1970


Entry = MetricsEntry | TagsEntry | FileEntry | EndEntry | ResumeEntry
_KINDS: Mapping[str, type[Entry]] = {
    "metrics": MetricsEntry,
    "tags": TagsEntry,
    "file": FileEntry,
    "end": EndEntry,
    "resume": ResumeEntry,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FILE_BEGINNING = b'{"kind": "file"'


def encode(entry: Entry) -> bytes:
    """The line for `entry`, its newline included."""
    return json.dumps({"kind": _NAMES[type(entry)], **vars(entry)}).encode() + b"\n"


def is_file(line: bytes) -> bool:
    """Whether `line` says that it holds a `FileEntry`: faster than to decode it."""
    return line.startswith(_FILE_BEGINNING)


def decode(line: bytes) -> Entry:
    """The entry of `line`. Raises ValueError if it is invalid."""
    try:
        fields = json.loads(line)
        return _KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a journal entry: {line[:80]!r}") from error

"""The record in a run's folder: how the run was started, so that it can be resumed."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.journal.durable import put_file

RECORD_NAME, SOURCE_NAME, RESOLVED_NAME = "run.json", "curriculum.yaml", "resolved.yaml"

START_FOLDER = "start"
"""Where a run keeps the agent that it began with, among its artifacts and its checkpoints."""


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "curriculum": str,
    "file": str,
    "begun_ms": int,
    "key": (str, type(None)),
    "spent_steps": (int, type(None)),
    "versions": Mapping,
    "configuration": (str, type(None)),
}


class InitialAgentRef(NamedTuple):
    """Which agent a run began with, as its record keeps it."""

    source: str  # a run's id, or a folder
    step: int  # at which that agent was saved
    sha256: str  # of its weights' file


class InitialAgentFiles(Protocol):
    """An agent that a run begins with, as far as its record needs it."""

    @property
    def ref(self) -> InitialAgentRef:
        """Which agent it is."""
        ...

    def write(self, folder: Path) -> None:
        """Write it to `folder`. Raises OSError."""
        ...


@dataclass(frozen=True)
class RunRecord:
    """How a run was begun, and whether it had all its steps."""

    name: str  # of the run
    curriculum: str  # its name
    file: str  # that it was read from, an absolute path
    begun_ms: int  # since 1970
    key: str | None = None  # under which its caller finds it again
    spent_steps: int | None = None  # steps taken, where they were spent before the goal
    versions: Mapping[str, str] = field(default_factory=dict)  # of what computes the result
    start: InitialAgentRef | None = None  # the agent that it began with, kept beside this
    configuration: str | None = None  # hash of RESOLVED_NAME; None: begun by an older version


def write_record(
    folder: Path,
    record: RunRecord,
    curriculum: LoadedCurriculum,
    *,
    start: InitialAgentFiles | None = None,
) -> None:
    """Make `folder` with `record`, the curriculum and the agent that the run begins with in it.

    Raises OSError, leaving nothing.
    """
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir()
        write_curriculum(fresh, curriculum)
        if start is not None:
            start.write(fresh / START_FOLDER)
            record = replace(record, start=start.ref)
        _write(fresh, replace(record, configuration=configuration_hash(fresh)))
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def write_curriculum(folder: Path, curriculum: LoadedCurriculum) -> None:
    """Write both texts of `curriculum`, and its own blocks, to `folder`. Raises OSError."""
    for name, text in curriculum.files.items():
        put_file(folder / name, text.encode())
    put_file(folder / SOURCE_NAME, without_password(curriculum.source_text).encode())
    put_file(folder / RESOLVED_NAME, curriculum.resolved_text.encode())


def configuration_hash(folder: Path) -> str:
    """The SHA-256 of the configuration in `folder`. Raises OSError where it can't be read."""
    return hashlib.sha256((folder / RESOLVED_NAME).read_bytes()).hexdigest()


def note_spent_steps(folder: Path, steps: int | None) -> None:
    """Note that a run had all its steps, or with None that it goes on. Raises OSError."""
    record = read_record(folder)
    if record is not None and record.spent_steps != steps:
        _write(folder, replace(record, spent_steps=steps))


def read_record(folder: Path) -> RunRecord | None:
    """What `write_record` left in `folder`; None if missing or unreadable."""
    try:
        values = json.loads((folder / RECORD_NAME).read_bytes())
        start = values.pop("start", None)
        record = RunRecord(**values, start=None if start is None else InitialAgentRef(*start))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    fits = all(isinstance(getattr(record, name), kind) for name, kind in _TYPES.items())
    return record if fits else None


def _write(folder: Path, record: RunRecord) -> None:
    put_file(folder / RECORD_NAME, json.dumps(asdict(record)).encode())

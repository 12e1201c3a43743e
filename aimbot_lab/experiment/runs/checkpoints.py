"""Checkpoints as files: two generations, each whole or not there, each checked before use.

`step-NNN.checkpoint` is one line of magic and SHA-256 over all that follows, one line of JSON
with the parts it relies on and the hashes of the configuration, of the world's content and of the
code that it was trained under, and the training's state. `part-NAME` are those parts.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aimbot_lab.tracking.durable import put_file
from aimbot_lab.tracking.tracker import Notify, Outage, silent
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.version import code_hash

MAGIC = b"aimbot-lab checkpoint 1"
GENERATIONS = 2
HASHES = ("configuration", "code")
_STATE_NAME, _PART_NAME = "step-{:012d}.checkpoint", "part-{}"


def do_nothing() -> None:
    """Do nothing."""


class PartDigest(NamedTuple):
    """What a part's bytes must be."""

    size: int
    sha256: str


PartDigests = Mapping[str, PartDigest]


@dataclass(frozen=True)
class KeptCheckpoint:
    """A checkpoint that was read and found whole; parts are read when asked for."""

    step: int  # environment steps
    state: bytes
    path: Path
    configuration: str | None  # hash of the run's configuration; None: by an older version
    content: Any  # of the world, as `content_of` gave it; None: it has none, or by an older version
    code: str | None  # hash of the code that wrote it; None: an older version
    parts: tuple[str, ...]  # their names
    read_part: Callable[[str], bytes]


class CheckpointFolder:
    """The checkpoints of one run, in the folder `path`.

    `configuration` is the hash of the run's, `content` says of what its world is made. `begin`
    makes that folder with the run's record, before the first checkpoint or a later one; it raises
    OSError where the disk refuses.
    `check_owner` is called before anything is written, and may raise. `notify` is called with one
    line for a disk that refuses and for a checkpoint that is damaged.
    """

    def __init__(
        self,
        path: Path,
        *,
        configuration: str | None = None,
        content: Mapping[str, str] | None = None,
        begin: Callable[[], None] = do_nothing,
        check_owner: Callable[[], None] = do_nothing,
        notify: Notify = silent,
    ) -> None:
        self.path = path
        self._known: dict[str, Any] = {"configuration": configuration}
        if content is not None:
            self._known["content"] = dict(content)
        self._begin = begin
        self._check_owner = check_owner
        self._notify = notify
        self._disk = Outage(notify)
        self._parts: dict[int, PartDigests] = {}  # of the generations that were written or read
        self._damaged: list[Path] = []

    @property
    def newest_step(self) -> int | None:
        """The step of the newest file, whole or not; None without any."""
        return max(self._steps(), default=None)

    def has_configuration(self, configuration: str) -> bool:
        """Whether a checkpoint says so of itself; nothing is read but its first lines."""
        for step in self._steps():
            with suppress(OSError, ValueError), self._state_path(step).open("rb") as file:
                file.readline()
                if _listed(file.readline()).configuration == configuration:
                    return True
        return False

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write `checkpoint`, unless it is there; where the disk refuses, those before it stay."""
        self._check_owner()
        try:
            if not self.path.is_dir():
                self._parts.clear()
                self._begin()
            if checkpoint.step in self._parts:
                return
            self._write(checkpoint)
        except OSError as error:
            self._disk.begin(
                f"{self.path}: no checkpoint: {error.strerror or error}",
                consequence=f"the training goes on; {self._resume_point()}",
            )
        else:
            self._disk.end("checkpoints are kept again")

    def _resume_point(self) -> str:
        """From where the run could be resumed now."""
        if not self.path.is_dir():
            return "until a later one is kept it can't be resumed"
        step = self.newest_step
        return f"it could be resumed from {'the beginning' if step is None else f'step {step:,}'}"

    def newest(self) -> KeptCheckpoint | None:
        """The newest checkpoint that is whole; None if there is none."""
        for step in sorted(self._steps(), reverse=True):
            path = self._state_path(step)
            try:
                return self._read(step)
            except (OSError, ValueError) as error:
                self._damaged.append(path)
                self._notify(f"{path}: {error}; resuming from the one before it")
        return None

    def _write(self, checkpoint: Checkpoint) -> None:
        marks = self._write_parts(checkpoint.parts)
        listed = {name: list(mark) for name, mark in marks.items()}
        known = {"parts": listed, "code": code_hash(), **self._known}
        body = json.dumps(known).encode() + b"\n" + checkpoint.state
        head = MAGIC + b" " + hashlib.sha256(body).hexdigest().encode() + b"\n"
        put_file(self._state_path(checkpoint.step), head + body)
        self._parts[checkpoint.step] = marks
        self._prune()

    def _write_parts(self, parts: Mapping[str, Callable[[], bytes]]) -> PartDigests:
        known = {name: mark for marks in self._parts.values() for name, mark in marks.items()}
        for name in parts.keys() - known.keys():
            data = parts[name]()
            put_file(self._part_path(name), data)
            known[name] = _digest(data)
        return {name: known[name] for name in parts}

    def _prune(self) -> None:
        """Delete what no kept generation needs; where that fails, the next time does it."""
        self._delete(self._damaged)
        self._damaged.clear()
        self._delete(self.path.glob(".*.new"))  # half written when a process was killed
        steps = sorted(self._steps(), reverse=True)
        self._delete(self._state_path(step) for step in steps[GENERATIONS:])
        kept = steps[:GENERATIONS]
        self._parts = {step: marks for step, marks in self._parts.items() if step in kept}
        needed = {self._part_path(name) for marks in self._parts.values() for name in marks}
        self._delete(set(self.path.glob(_PART_NAME.format("*"))) - needed)

    def _delete(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _read(self, step: int) -> KeptCheckpoint:
        head, _, body = self._state_path(step).read_bytes().partition(b"\n")
        if head != MAGIC + b" " + hashlib.sha256(body).hexdigest().encode():
            raise ValueError("the checkpoint is damaged")
        line, _, state = body.partition(b"\n")
        marks, configuration, content, code = _listed(line)
        for name in marks:
            self._read_part(name, marks)
        self._parts[step] = marks
        return KeptCheckpoint(
            step,
            state,
            path=self._state_path(step),
            configuration=configuration,
            content=content,
            code=code,
            parts=tuple(marks),
            read_part=lambda name: self._read_part(name, marks),
        )

    def _read_part(self, name: str, marks: PartDigests) -> bytes:
        data = self._part_path(name).read_bytes()
        if _digest(data) != marks[name]:
            raise ValueError(f"its part {name} is damaged")
        return data

    def _steps(self) -> Iterator[int]:
        for path in self.path.glob("step-*.checkpoint"):
            with suppress(ValueError):
                yield int(path.stem.removeprefix("step-"))

    def _state_path(self, step: int) -> Path:
        return self.path / _STATE_NAME.format(step)

    def _part_path(self, name: str) -> Path:
        return self.path / _PART_NAME.format(name)


class _Listed(NamedTuple):
    """The second line of a checkpoint."""

    parts: PartDigests
    configuration: str | None
    content: Any
    code: str | None


def _listed(line: bytes) -> _Listed:
    """The parts that a checkpoint relies on, with the hashes of configuration and world it has.

    Raises ValueError where `line` lists no parts.
    """
    try:
        known = json.loads(line)
        marks = {str(name): PartDigest(*mark) for name, mark in known["parts"].items()}
        hashes = [None if (one := known.get(key)) is None else str(one) for key in HASHES]
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("the checkpoint lists no parts") from error
    if any("/" in name or "\0" in name for name in marks):
        raise ValueError("a part of the checkpoint lies elsewhere")
    configuration, code = hashes
    return _Listed(marks, configuration, known.get("content"), code)


def _digest(data: bytes) -> PartDigest:
    return PartDigest(len(data), hashlib.sha256(data).hexdigest())

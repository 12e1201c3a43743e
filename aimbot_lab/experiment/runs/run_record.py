"""What a run's folder keeps: how it was begun, its curriculum, its checkpoints, how it died.

A run keeps the shape of its world beside its curriculum (`spec.json`), so that reading one needs
no world. The data folder notes the code that each training began with, where only the owner can
write: such code may run again.

Of checkpoints there are two generations, each whole or not there, each checked before use.
`step-NNN.checkpoint` is one line of magic and SHA-256 over all that follows, one line of JSON
with the parts it relies on and the hashes of the configuration, of the world's content and of the
code that it was trained under, and the training's state. `part-NAME` are those parts.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.foundation.files import open_file, put_file, read_bounded, read_start
from aimbot_lab.foundation.named_code import MayRun, NamedCode, is_allowed, never
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking import history
from aimbot_lab.tracking.data_folder import DataFolder, without_password
from aimbot_lab.tracking.run_folder import RunFolder, run_folders
from aimbot_lab.tracking.tracker import Notify, Outage, RunStatus, silent
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.version import code_hash
from aimbot_lab.worlds.registry import code_of, kept_spec, knows_spec, stored_spec, type_of

if TYPE_CHECKING:
    from aimbot_lab.training.agents.agent_files import SavedAgent

RECORD_NAME, SOURCE_NAME, RESOLVED_NAME = "run.json", "curriculum.yaml", "resolved.yaml"

START_FOLDER = "start"
"""Where a run keeps the agent that it began with, among its artifacts and its checkpoints."""


RATE = "train.learning_rate"
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "curriculum": str,
    "file": str,
    "begun_ms": int,
    "key": (str, type(None)),
    "spent_steps": (int, type(None)),
    "versions": Mapping,
    "configuration": (str, type(None)),
    "rates": (list, tuple),
}

SPEC_NAME = "spec.json"
MAX_SPEC_BYTES = 2**22
OTHERS_WRITE = 0o022  # of a folder's mode


class InitialAgentRef(NamedTuple):
    """Which agent a run began with, as its record keeps it."""

    source: str  # a run's id, or a folder
    step: int  # at which that agent was saved
    sha256: str  # of its weights' file


@dataclass(frozen=True)
class InitialAgent:
    """An agent to begin with: weights and the scaling inside; the optimiser starts fresh."""

    ref: InitialAgentRef
    files: Mapping[str, bytes]  # of the agent, by name
    saved: "SavedAgent"

    @property
    def description(self) -> str:
        """Which agent it is, for a person."""
        where = f"the last agent of {self.origin}" if self._of_run else self.origin
        return f"{where}, saved at step {self.ref.step:,}"

    @property
    def origin(self) -> str:
        """What trained it, for a person."""
        source = self.ref.source
        return f"run {source[:12]}" if self._of_run else f"the agent in {source}"

    @property
    def _of_run(self) -> bool:
        return self.ref.source.isalnum()

    def write(self, folder: Path) -> None:
        """Write the agent's files to `folder`, made where it is missing. Raises OSError."""
        folder.mkdir(exist_ok=True)
        for name, data in self.files.items():
            put_file(folder / name, data)


@dataclass(frozen=True)
class RunRecord:
    """How a run was begun, and whether it had all its steps."""

    name: str  # of the run
    curriculum: str  # its name
    file: str  # that it was read from, an absolute path
    begun_ms: int  # since 1970
    key: str | None = None  # under which its caller finds it again
    spent_steps: int | None = None  # steps taken, if they ran out before the last lesson passed
    versions: Mapping[str, str] = field(default_factory=dict)  # of what computes the result
    start: InitialAgentRef | None = None  # the agent that it began with, kept beside this
    configuration: str | None = None  # hash of RESOLVED_NAME; None: begun by an older version
    rates: Sequence[tuple[int, Any]] = ()
    """Steps from which on it has other values of RATE than it was begun with, and these."""


def write_record(
    folder: Path,
    record: RunRecord,
    curriculum: LoadedCurriculum,
    *,
    start: InitialAgent | None = None,
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
    return hashlib.sha256(read_start(folder / RESOLVED_NAME)).hexdigest()


def note_rate(folder: Path, step: int, rate: Any) -> None:
    """Note that a run learns by another `rate` from `step` on. Raises OSError."""
    record = read_record(folder)
    if record is not None:
        _write(folder, replace(record, rates=[*record.rates, (step, rate)]))


def note_spent_steps(folder: Path, steps: int | None) -> None:
    """Note that a run had all its steps, or with None that it goes on. Raises OSError."""
    record = read_record(folder)
    if record is not None and record.spent_steps != steps:
        _write(folder, replace(record, spent_steps=steps))


def read_record(folder: Path) -> RunRecord | None:
    """What `write_record` left in `folder`; None if missing or unreadable."""
    try:
        values = json.loads(read_bounded(folder / RECORD_NAME, MAX_SPEC_BYTES))
        start = values.pop("start", None)
        record = RunRecord(**values, start=None if start is None else InitialAgentRef(*start))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    fits = all(isinstance(getattr(record, name), kind) for name, kind in _TYPES.items())
    return record if fits else None


def _write(folder: Path, record: RunRecord) -> None:
    put_file(folder / RECORD_NAME, json.dumps(asdict(record)).encode())


def stored_curriculum(fetch: Callable[[str], Path], *, may_run: MayRun = never) -> LoadedCurriculum:
    """The curriculum of a run, whose artifacts `fetch` gives by their names.

    Code that its world names runs where `may_run` says so; else the world's shape is the one that
    the run kept. Raises LabError where that is damaged.
    """
    path = fetch(RESOLVED_NAME)
    loaded = load_curriculum(path, find=fetch, may_run=may_run)
    if knows_spec(loaded.config.env):
        return loaded
    try:
        data = read_bounded(fetch(SPEC_NAME), MAX_SPEC_BYTES)
    except StoreError:  # older runs kept none
        return loaded
    try:
        stored_spec(loaded.config.env, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise LabError(
            f"{SPEC_NAME} of the run is damaged: put back the file as the run wrote it"
        ) from error
    return load_curriculum(path, find=fetch)


def spec_text(env: WorldSettings) -> str | None:
    """What a run keeps as SPEC_NAME; None where its world needs none."""
    document = kept_spec(env)
    return None if document is None else json.dumps(document, indent=1) + "\n"


def note_code(data_folder: DataFolder, config: CurriculumFile) -> None:
    """Note the code that a training of `config` begins with, which this process runs.

    An environment that draws itself, for its films, counts as the same.
    """
    codes = list(filter(is_allowed, config.codes))
    if code_of(config.env) in codes:
        codes += filter(None, [code_of(type_of(config.env).filmed(config.env))])
    for code in codes:
        with suppress(OSError):  # a full disk: it will have to be trusted anew
            data_folder.code.mkdir(mode=0o700, parents=True, exist_ok=True)
            (data_folder.code / code.sha256).write_text(f"{code.shown}\n", encoding="utf-8")


def noted_in(data_folder: DataFolder) -> MayRun:
    """Whether a training in `data_folder` began with code, as `note_code` noted it."""

    def noted(code: NamedCode) -> bool:
        try:
            status = data_folder.code.stat()
        except OSError:
            return False
        is_own = status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE
        return is_own and (data_folder.code / code.sha256).is_file()

    return noted


@dataclass(frozen=True)
class ResumableRun:
    """A run that was not finished, and perhaps still runs."""

    run_id: str
    record: RunRecord
    folder: RunFolder
    data_folder: DataFolder

    @property
    def alive(self) -> bool:
        """Whether a process trains it, or may do so on another machine."""
        return not self.folder.is_free

    def curriculum(self, overrides: Sequence[str] = ()) -> LoadedCurriculum:
        """What it was begun with, with each `KEY=VALUE` of `overrides` put in.

        Its learning rate is the last that it was given. Raises ConfigurationError for an override
        that can't be.
        """
        path, may_run = self.folder.checkpoints / RESOLVED_NAME, noted_in(self.data_folder)
        rates = [f"{RATE}={json.dumps(rate)}" for _, rate in self.record.rates[-1:]]
        return load_curriculum(path, (*rates, *overrides), may_run=may_run)


def resumable_runs(data_folder: DataFolder, *, key: str | None = None) -> list[ResumableRun]:
    """All of them, those begun last first; with `key`, those whose request had it."""
    found = []
    for folder in run_folders(data_folder):
        record, run_id = read_record(folder.checkpoints), folder.run_id
        if record is not None and run_id is not None and key in (None, record.key):
            found.append(ResumableRun(run_id, record, folder, data_folder))
    return sorted(found, key=lambda run: run.record.begun_ms, reverse=True)


def close_orphan_runs(
    data_folder: DataFolder, *, on_fault: history.OnFault = history.ignore_fault
) -> list[str]:
    """As `history.close_orphan_runs`: FAILED where the steps were spent, else KILLED."""
    return history.close_orphan_runs(data_folder, status_of=_status, on_fault=on_fault)


def _status(folder: RunFolder) -> RunStatus:
    record = read_record(folder.checkpoints)
    return "KILLED" if record is None or record.spent_steps is None else "FAILED"


@dataclass(frozen=True)
class RunRequest:
    """What to run, and where it is tracked.

    With `resume`, that run goes on from its last checkpoint, on the store where it began; such a
    request comes from `resume.check_resume`. A caller may give a `key` to find the run
    by with `resumable_runs` while it is not finished.
    """

    curriculum: LoadedCurriculum
    data_folder: DataFolder
    name: str | None = None  # of the run; by default the curriculum's
    tracking_uri: str | None = None
    resume: ResumableRun | None = None
    key: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)  # of a new run, beside its own
    start: InitialAgent | None = None  # the agent that a new run begins with
    take_over: bool = False  # resume it even though another process may still train it
    callbacks: Sequence[Any] = ()  # of stable-baselines3, beside those that the curriculum names

    @property
    def run_name(self) -> str:
        """What the run is called."""
        if self.resume is not None:
            return self.resume.record.name
        return self.name or self.curriculum.name

    @property
    def start_ref(self) -> InitialAgentRef | None:
        """Which agent the run begins with; of one that is resumed, began with."""
        if self.resume is not None:
            return self.resume.record.start
        return None if self.start is None else self.start.ref

    @property
    def public_curriculum(self) -> LoadedCurriculum:
        """The curriculum with texts that everyone who sees the run may read."""
        return replace(
            self.curriculum,
            source_text=without_password(self.curriculum.source_text),
            resolved_text=without_password(self.curriculum.resolved_text),
        )


MAGIC = b"aimbot-lab checkpoint 1"
GENERATIONS = 2
HASHES = ("configuration", "code")
_STATE_NAME, _PART_NAME = "step-{:012d}.checkpoint", "part-{}"


def do_nothing() -> None:
    """Do nothing."""


PartDigests = Mapping[str, tuple[int, str]]  # size and SHA-256 of each part, by its name


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
            with suppress(OSError, ValueError), open_file(self._state_path(step)) as file:
                file.readline()
                if _listed(file.readline())[1] == configuration:
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
            point = "until a later one is kept it can't be resumed"
            if self.path.is_dir():
                step = self.newest_step
                begins = "the beginning" if step is None else f"step {step:,}"
                point = f"it could be resumed from {begins}"
            self._disk.begin(
                f"{self.path}: no checkpoint: {error.strerror or error}",
                consequence=f"the training continues; {point}",
            )
        else:
            self._disk.end("checkpoints are kept again")

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
        head, _, body = read_start(self._state_path(step)).partition(b"\n")
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
        data = read_start(self._part_path(name))
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


def _listed(line: bytes) -> tuple[PartDigests, str | None, Any, str | None]:
    """(parts, hash of the configuration, content, hash of the code) of a checkpoint's second line.

    Raises ValueError where `line` lists no parts.
    """
    try:
        known = json.loads(line)
        marks = {str(name): (size, sha256) for name, (size, sha256) in known["parts"].items()}
        hashes = [None if (one := known.get(key)) is None else str(one) for key in HASHES]
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError("the checkpoint lists no parts") from error
    if any("/" in name or "\0" in name for name in marks):
        raise ValueError("a part of the checkpoint lies elsewhere")
    configuration, code = hashes
    return marks, configuration, known.get("content"), code


def _digest(data: bytes) -> tuple[int, str]:
    return len(data), hashlib.sha256(data).hexdigest()

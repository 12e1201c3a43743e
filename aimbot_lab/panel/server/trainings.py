"""What can be trained, and what pages have started: ordinary processes, which outlive the panel."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import psutil
from pydantic import TypeAdapter

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError, reason_and_place
from aimbot_lab.foundation.files import exclusive, put_file, read_start
from aimbot_lab.panel.server.messages import STORE, Loader, read_document
from aimbot_lab.shipped.named_files import CURRICULUM, SHIPPED, SUFFIXES, SWEEP, shipped_names
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import living_folders
from aimbot_lab.tracking.tracker import PANEL_TAG
from aimbot_lab.worlds.registry import DEFAULT, default_type

MAX_OWN = 60  # files of the folder
_COMMENTS = re.compile(r"(?:^#.*\n)+", re.MULTILINE)
_SENTENCE = re.compile(r"(?:[\w ]{1,30}: )?(.+?)(?:\.(?= |$)|$)")


@dataclass(frozen=True)
class OfferedCurriculum:
    """A curriculum as the start page offers it."""

    key: str  # the name in the list that the server made
    title: str
    about: str
    shipped: bool
    main: bool  # of the world that is meant where none is named
    world: str = ""
    lessons: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    total_steps: int = 0
    code: str = ""  # that its world is made of, and that a training runs; empty: none is named
    faults: list[str] = field(default_factory=list)  # line by line, as `check` gives them


class OfferedFiles:
    """The files of a kind that `here` offers, by keys; looked up anew at each `look`."""

    kind, looks_so = CURRICULUM, re.compile(r"^lessons\s*:", re.MULTILINE)

    def __init__(self, here: Path) -> None:
        self._here = here
        self._paths: dict[str, Path] = {}

    def find(self) -> Mapping[str, Path]:
        """All of them, the shipped ones first."""
        self._paths = dict(self._found())
        return self._paths

    def path(self, key: str) -> Path:
        """The file of a key that was listed. Raises ConfigurationError for another."""
        if key not in self._paths:
            raise ConfigurationError(f"that {self.kind.noun} is not offered; load the page again")
        return self._paths[key]

    def _found(self) -> Iterator[tuple[str, Path]]:
        own = [*self._own(self._here / self.kind.folder), *self._own(self._here)]
        shipped = SHIPPED / self.kind.folder
        known = {path.resolve() for path in shipped.glob("*.yaml")}
        for name in shipped_names(self.kind):
            yield f"shipped:{name}", shipped / f"{name}.yaml"
        for path in [one for one in own if one.resolve() not in known][:MAX_OWN]:
            yield f"own:{path.relative_to(self._here)}", path

    def _own(self, folder: Path) -> list[Path]:
        """Files of `folder` that look like those of the kind."""
        found = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
        return [path for path in found if path.is_file() and self.looks_so.search(_text(path))]


class Curricula(OfferedFiles):
    """The curricula that `here` offers."""

    def look(self) -> list[OfferedCurriculum]:
        """All of them, checked: the shipped ones of the main world first, by their targets."""
        return sorted((_choice(key, path) for key, path in self.find().items()), key=_rank)


@dataclass(frozen=True)
class OfferedSweep:
    """A sweep as the page offers it."""

    key: str  # the name in the list that the server made
    title: str
    name: str = ""  # that its file gives it
    about: str = ""
    trials: int = 0
    workers: int = 0
    searches: str = ""  # what, and by which measure: a sweep that has begun has it of its file
    fault: str = ""  # the first, as `check` gives it; empty: none


def searches_of(keys: Iterable[str], measure: str) -> str:
    """What a sweep searches, by which its file is found again."""
    return " ".join([measure, *sorted(keys)])


class OfferedSweeps(OfferedFiles):
    """The sweeps that `here` offers."""

    kind, looks_so = SWEEP, re.compile(r"^search\s*:", re.MULTILINE)

    def look(self) -> list[OfferedSweep]:
        """All of them, checked. Imports Optuna."""
        from aimbot_lab.sweep.document import load_sweep

        def offered(key: str, path: Path) -> OfferedSweep:
            title = key.partition(":")[2]
            try:
                config = load_sweep(path).config
            except (ConfigurationError, SystemExit) as error:
                return OfferedSweep(key, title, fault=str(error))
            return OfferedSweep(
                key,
                title,
                config.name,
                _about(path),
                config.trials,
                config.workers,
                searches_of(config.search, config.objective.measure),
            )

        return [offered(key, path) for key, path in self.find().items()]


def _text(path: Path) -> str:
    try:
        return read_start(path, 65_536).decode("utf-8", "replace")
    except OSError:
        return ""


def _about(path: Path) -> str:
    """The first sentence of the first comment of a file, without the name that it begins with."""
    comments = _COMMENTS.search(_text(path))
    lines = [line.lstrip("# ").rstrip() for line in (comments[0] if comments else "").splitlines()]
    prose = " ".join(line for line in lines if not line.startswith("yaml-language-server"))
    sentence = _SENTENCE.match(prose)
    found = sentence[1] if sentence else ""
    return found[:1].upper() + found[1:]


def _choice(key: str, path: Path) -> OfferedCurriculum:
    shipped = key.startswith("shipped:")
    name = path.stem if shipped else key.removeprefix("own:")
    about = _about(path)
    try:
        loaded = load_curriculum(path)
    except ConfigurationError as error:
        faults = [*error.faults] or [str(error)]
    except BaseException as error:  # noqa: BLE001  # of a module that it names: others are offered
        faults = [f"{path}: can't be read: {reason_and_place(error)}"]
    else:
        config = loaded.config
        targets = dict.fromkeys(target for one in config.lessons for target in one.targets)
        return OfferedCurriculum(
            key,
            title=f"Train-{_capital(loaded.name)}" if shipped else key.removeprefix("own:"),
            about=about,
            shipped=shipped,
            main=shipped and config.env.world == DEFAULT,
            world=config.env.world,
            lessons=[one.name for one in config.lessons],
            targets=[*targets],
            total_steps=config.train.total_steps,
            code=", ".join(one.shown for one in loaded.unasked),
        )
    return OfferedCurriculum(key, name, about, shipped, main=False, faults=faults)


def _capital(name: str) -> str:
    text = name.replace("_", " ").replace("-", " ")
    return text[:1].upper() + text[1:]


def _rank(choice: OfferedCurriculum) -> tuple[object, ...]:
    """Shipped ones of the main world by their targets, then the others.

    Those that bear a target's name come first, then those of all targets.
    """
    order = {target: place for place, target in enumerate(default_type().targets(None))}
    places = [order.get(target, len(order)) for target in choice.targets]
    is_plain = [choice.key] == [f"shipped:{target}" for target in choice.targets]
    is_whole = order.keys() <= {*choice.targets}
    first = min(places, default=0) if is_plain else len(order) + (not is_whole)
    return not choice.shipped, not choice.main, first, choice.title


FOLDER, STATE_NAME, LOG_NAME, LOCK_NAME = "panel", "started.json", "training.log", "start.lock"
PROGRAM = (sys.executable, "-P", "-m", "aimbot_lab")
LAST_BYTES = 4096  # of what a process said


@dataclass(frozen=True)
class Started:
    """The training that was started last."""

    title: str
    pid: int
    created: float  # when the process was, s since 1970
    begun_ms: int
    key: str = ""  # its run's tag `PANEL_TAG`; empty: the run was there before
    run_id: str | None = None  # once it has one
    alive: bool = True
    last_words: str = ""  # of one that has ended without a run, or failed
    fault: str = ""  # why it is not known whether one that has ended has a run
    sweep: str = ""  # the name of a sweep; empty: it is a training


class Trainings:
    """The training of this data folder's panels: there is one at a time.

    It is found again by a panel that began after it, and by one that did not look while it
    trained. `program` is what runs `aimbot-lab`, with variables of `environment` beside this
    process's.
    """

    def __init__(
        self,
        data_folder: DataFolder,
        *,
        here: Path,
        loader: Loader,
        tracking_uri: str | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._data_folder, self._here, self._tracking_uri = data_folder, here, tracking_uri
        self._folder = data_folder.root / FOLDER
        self._loader = loader
        self._started: Started | None = None
        self._environment = environment
        self.program: Sequence[str] = PROGRAM

    def look(self) -> Started | None:
        """The training that was started last, as it is now."""
        before = self._noted()
        if before is None or not (before.alive or before.fault):
            return before
        found = replace(before, alive=_lives(before), fault="")
        if found.run_id is None:
            found = self._with_run(found)
        if not found.alive:
            found = replace(found, last_words=self._last_words())
        with suppress(LabError), exclusive(self._folder / LOCK_NAME):
            if self._noted() == before:  # and no other was started meanwhile
                self._keep(found)
        return found

    def start(
        self, words: Sequence[str], *, title: str, run_id: str | None = None, sweep: str = ""
    ) -> Started:
        """Start `aimbot-lab` with `words`; `run_id` is that of a run that is resumed.

        Raises ConfigurationError where one trains already.
        """
        self._data_folder.create()
        self._folder.mkdir(exist_ok=True)
        place = ["--data-dir", str(self._data_folder.root)]
        place += [] if self._tracking_uri is None else ["--tracking-uri", self._tracking_uri]
        key = "" if run_id else uuid.uuid4().hex
        place += ["--tag", f"{PANEL_TAG}={key}"] if key else []
        with exclusive(self._folder / LOCK_NAME):
            before = self._noted()
            if before is not None and before.alive and _lives(before):
                raise ConfigurationError(f"{before.title} still trains; stop it first")
            with (self._folder / LOG_NAME).open("wb") as log:
                process = subprocess.Popen(
                    [*self.program, *words, *place],
                    cwd=self._here,
                    env={**os.environ, **self._environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # closing the panel leaves it running
                )
            created = psutil.Process(process.pid).create_time()
            now_ms = time.time_ns() // 1_000_000
            self._keep(
                started := Started(title, process.pid, created, now_ms, key, run_id, sweep=sweep)
            )
        threading.Thread(target=process.wait, daemon=True).start()  # which leaves no zombie
        return started

    def _with_run(self, started: Started) -> Started:
        """`started` with its run: from the data folder while it lives, then from the store."""
        if started.alive:
            living = living_folders(self._data_folder)
            ids = (one.run_id for one in living if one.owner.pid == started.pid)
            return replace(started, run_id=next((one for one in ids if one), None))
        if not started.key:  # of an older version
            return started
        from aimbot_lab.tracking.history import list_runs

        try:
            self._loader.need(*STORE)
            found = list_runs(
                self._data_folder,
                tracking_uri=self._tracking_uri,
                condition=f"tags.`{PANEL_TAG}` = '{started.key}'",
            )
        except LabError as error:
            return replace(started, fault=str(error))
        return replace(started, run_id=found[0].run_id if found else None)

    def _last_words(self) -> str:
        with suppress(OSError), (self._folder / LOG_NAME).open("rb") as log:
            log.seek(max(log.seek(0, 2) - LAST_BYTES, 0))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
            return "\n".join(lines[-6:])
        return ""

    def _noted(self) -> Started | None:
        """What a panel of this data folder noted last; None: nothing, or what ended before us."""
        noted, own = None, self._started
        with suppress(LabError):
            noted = read_document(self._folder / STATE_NAME, _STARTED)
        if noted is None or (own is None and not (noted.alive or noted.fault)):
            return own
        # One that the disk refused to note is later than what it has.
        return noted if own is None or noted.begun_ms >= own.begun_ms else own

    def _keep(self, found: Started) -> None:
        if found == self._started:
            return
        self._started = found
        with suppress(OSError):
            put_file(self._folder / STATE_NAME, json.dumps(asdict(found)).encode())


def _lives(started: Started) -> bool:
    with suppress(psutil.Error, ValueError, OverflowError):  # no process can have such a number
        process = psutil.Process(started.pid)
        same = abs(process.create_time() - started.created) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    return False


_STARTED = TypeAdapter(Started)

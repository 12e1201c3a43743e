"""The runs and sweeps of the data folder."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic import dataclasses as checked

from aimbot_lab.curriculum.reports import CellReport, LessonReport, Measured
from aimbot_lab.curriculum.settings import Key, MixWeights
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import never
from aimbot_lab.foundation.shown_text import odds, shown_evidence
from aimbot_lab.panel.server.messages import (
    STORE,
    STRICT,
    SWEEPS,
    Loader,
    failure_words,
    in_thread,
    plain,
    read_document,
)
from aimbot_lab.panel.server.trainings import searches_of
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.history import list_own_trainings, read_run
from aimbot_lab.tracking.journal import stored_ending
from aimbot_lab.tracking.run_folder import RunFolder, run_folders
from aimbot_lab.tracking.tracker import WORLD_TAG, RunSummary, own_tags, saved_agents

if TYPE_CHECKING:
    from aimbot_lab.sweep.record import SweepRecord
    from aimbot_lab.sweep.report import SweepReport

MAX_SWEEPS = 100
OF_TRIALS = ("number", "state", "value", "lower", "upper", "at_least", "seconds", "reason")
OF_CONFIRMED = ("number", "searched", "value", "lower", "upper", "gain", "gain_lower", "gain_upper")
MAX_TRIALS = 2000  # that are shown of one, the newest


@dataclass(frozen=True)
class SweepLine:
    """A sweep as the page lists it."""

    name: str
    changed_ms: int  # when its file was written last, since 1970


class Sweeps:
    """Those that were begun here; one that is kept on a server is not among them."""

    def __init__(self, data_folder: DataFolder, loader: Loader) -> None:
        self._loader = loader
        self._data_folder = data_folder
        self._records: dict[str, SweepRecord] = {}

    def look(self) -> list[SweepLine]:
        """All of them, the one that changed last first."""
        lines = [SweepLine(name, changed_ms(path)) for name, path in self._files().items()]
        return sorted(lines, key=lambda line: -line.changed_ms)[:MAX_SWEEPS]

    def report(self, name: str) -> dict[str, Any]:
        """A sweep as it stands. Raises LabError if there is no such sweep or it can't be read."""
        self._loader.need(*SWEEPS)
        from aimbot_lab.sweep.report import report
        from aimbot_lab.sweep.storage import storage_error

        try:
            record = self._record(name)
            return _document(report(record), record)
        except Exception as error:
            self._records.pop(name, None)
            failed = error if isinstance(error, LabError) else storage_error(error)
            if failed is None:
                raise
            raise failed from error

    def _record(self, name: str) -> "SweepRecord":
        from aimbot_lab.sweep.record import find_record

        if name not in self._files():
            raise ConfigurationError("that sweep is no longer in this data folder")
        if name not in self._records:
            self._records[name] = find_record(self._data_folder, name, None, may_run=never)
        return self._records[name]

    def _files(self) -> Mapping[str, Path]:
        files = (self._data_folder.root / "sweeps").glob("*/study.db")
        return {path.parent.name: path for path in files}


def changed_ms(path: Path) -> int:
    """When a SQLite file was written last, since 1970; 0: it is not there."""
    newest = 0
    for file in (path, path.with_name(path.name + "-wal")):  # where SQLite writes first
        try:
            newest = max(newest, file.stat().st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return newest


def _document(report: "SweepReport", record: "SweepRecord") -> dict[str, Any]:
    from aimbot_lab.sweep.report import verdict

    trials = report.trials[-MAX_TRIALS:]
    keys = list(dict.fromkeys(key for trial in trials for key in trial.params))
    return {
        "name": report.name,
        "measure": report.measure,
        "maximizes": report.maximizes,
        "status": report.status,
        "total": report.total,
        "ended": report.ended,
        "to_confirm": report.to_confirm,
        "confirm_ended": report.confirm_ended,
        "best": report.best,
        "verdict": verdict(report),
        "parent_run": record.parent_run,
        "searches": searches_of(record.config.search, report.measure),
        "keys": keys,
        "trials": [
            {key: getattr(trial, key) for key in OF_TRIALS}
            | {"values": [trial.params.get(key) for key in keys]}
            for trial in trials
        ],
        "confirmed": [
            {key: getattr(one, key) for key in ("label", *OF_CONFIRMED)}
            | {"seeds": len(one.trainings)}
            for one in report.confirmed
        ],
    }


LOG = logging.getLogger(__name__)
STORE_SECONDS = 5.0  # between two looks into the store, at least
REST = 20  # times the processor time that a look takes, until the next
PATIENCE = 1.0  # s for which a list waits for the store, where its answer is known to be quick
MAX_LISTED = 1000  # of the runs that are over


@dataclass(frozen=True)
class RunLine:
    """A run as the page lists it."""

    run_id: str
    name: str
    state: str  # trains, died, FINISHED, FAILED, KILLED or RUNNING (elsewhere, as far as is known)
    begun_ms: int  # since 1970; 0: not known
    resumable: bool = False
    win_rate: float | None = None
    lower: float | None = None  # end of its 95 % interval
    upper: float | None = None
    mean_return: float | None = None  # where nothing can be won
    experiment: str = ""
    experiment_id: str = ""
    lesson: str = ""  # that it is at, or came to, in words
    tags: Mapping[str, str] = field(default_factory=dict)  # that a user gave it
    saved: tuple[str, ...] = ()  # agents that it saved on request, by their names
    world: str = ""  # that it trains in; empty: not known


@checked.dataclass(frozen=True, config=STRICT)
class Runs:
    """The runs there are; `fault` says why the store, which knows those that are over, is mute."""

    runs: list[RunLine]
    fault: str
    complete: bool  # whether the store has been asked


class RunList:
    """The runs of a data folder and its store, for those who look.

    What is in the folder is found again at every look. The store is asked again once it may have
    changed, as its file and the folder show; one without a file is asked every few seconds.
    """

    def __init__(
        self, data_folder: DataFolder, *, tracking_uri: str | None, loader: Loader
    ) -> None:
        self._loader = loader
        self._data_folder, self._tracking_uri = data_folder, tracking_uri
        self._stored: dict[str, RunLine] = {}  # the newest that the store has
        self._found: dict[str, RunLine | None] = {}  # that were looked up since, by their ids
        self._mark: object = None  # how things were when the store was asked
        self._due = 0.0
        self._trained: frozenset[str] = frozenset()  # those that trained at the last look
        self._asking: asyncio.Task[None] | None = None  # which takes seconds the first time
        self._saved: dict[str, tuple[str, ...]] = {}  # by run, as pages have requested it
        self._fault, self._complete = "", False
        self.folders: dict[str, RunFolder] = {}

    async def look(self) -> list[RunLine]:
        """All of them, those that train first, then the newest."""
        here = await in_thread(self._here)
        await self._keep_up(here)
        here = {key: line for key, line in here.items() if self._is_shown(line)}
        lines = {**self._stored, **{key: self._with_result(line) for key, line in here.items()}}
        order = sorted(lines.values(), key=lambda line: (line.state != "trains", -line.begun_ms))
        return order[: MAX_LISTED + len(self._trained)]

    async def _keep_up(self, here: Mapping[str, RunLine]) -> None:
        """Have the store asked, if it may have changed and it is time for that."""
        if self._asking is not None and not self._asking.done():
            return
        trained = frozenset(run_id for run_id, line in here.items() if line.state == "trains")
        is_due = time.monotonic() >= self._due or self._trained - trained  # it knows how they ended
        self._trained = trained
        if not is_due:
            return
        mark = await in_thread(self._marked, here)
        if mark == self._mark:
            return
        self._mark = mark
        self._asking = asyncio.create_task(in_thread(self._ask_store))
        if self._complete:
            await asyncio.wait([self._asking], timeout=PATIENCE)

    def _marked(self, here: Mapping[str, RunLine]) -> object:
        """What is another once the store may have changed, as far as files show."""
        try:
            file = choose_address(self._data_folder, explicit=self._tracking_uri).sqlite_file
        except LabError:
            file = None
        if file is None:
            return object()
        return changed_ms(file), {(line.run_id, line.state) for line in here.values()}

    async def listed(self) -> Runs:
        """The same, and how well they are known."""
        complete = self._complete  # a thread may complete the list while it is looked at
        lines = await self.look()
        return Runs(lines, self._fault, complete)

    def find(self, run_id: str) -> RunFolder | None:
        """The folder of a run that is not wholly delivered; it is looked up again."""
        self._here()
        return self.folders.get(run_id)

    def line(self, run_id: str) -> RunLine | None:
        """A run as it is listed, or as the store has it; None: there is no such run."""
        here, found = self._here().get(run_id), self._found
        if here is not None and here.state == "trains":
            found.pop(run_id, None)
            return self._with_result(here)
        line = self._stored.get(run_id)
        if line is None or line.state == "RUNNING":  # it may have trained here a moment ago
            if run_id not in found:
                found[run_id] = self._looked_up(run_id)
            line = found[run_id]
        return line if here is None else self._with_result(here, line)

    def ask_store_again(self) -> None:
        """Have the next look ask the store: a run has ended there, or was changed."""
        self._mark, self._due = None, 0.0

    def another(self, run_id: str) -> str | None:
        """The newest run that is over beside that one; None: there is none."""
        others = [one for one in self._stored.values() if one.run_id != run_id]
        over = [one for one in others if one.state in ("FINISHED", "FAILED", "KILLED")]
        return max(over, key=lambda one: one.begun_ms).run_id if over else None

    def note_saved(self, run_id: str, name: str) -> None:
        """Note that a run has saved an agent, until the store lists it."""
        self._saved[run_id] = tuple(dict.fromkeys([*self._saved.get(run_id, ()), name]))

    def _is_shown(self, line: RunLine) -> bool:
        """Whether a run here is a training of its own; trials of a sweep have no record."""
        return line.begun_ms > 0 or line.state == "trains" or line.run_id in self._stored

    def _with_result(self, line: RunLine, stored: RunLine | None = None) -> RunLine:
        """`line` with what the store knows of it, its end above all."""
        stored, noted = stored or self._stored.get(line.run_id), self._saved.get(line.run_id, ())
        if stored is None:
            return replace(line, saved=noted)
        ended = line.state == "died" and stored.state in ("FINISHED", "FAILED", "KILLED")
        return replace(
            stored,
            state=stored.state if ended else line.state,
            begun_ms=line.begun_ms or stored.begun_ms,
            resumable=line.resumable,
            saved=tuple(dict.fromkeys([*stored.saved, *noted])),
        )

    def _here(self) -> dict[str, RunLine]:
        """Runs whose folder is here, because they train or can be resumed."""
        from aimbot_lab.experiment.runs.run_record import read_record

        folders = {one.run_id: one for one in run_folders(self._data_folder) if one.run_id}
        self.folders = folders
        lines = {}
        for run_id, folder in folders.items():
            record = read_record(folder.checkpoints)
            lines[run_id] = RunLine(
                run_id=run_id,
                name=record.name if record else "",
                state=(stored_ending(folder.path) or "died") if folder.is_free else "trains",
                begun_ms=record.begun_ms if record else 0,
                resumable=record is not None and folder.is_free,
            )
        return lines

    def _ask_store(self) -> None:
        uri = self._tracking_uri
        try:
            self._loader.need(*STORE)
            begun = time.thread_time()
            found = list_own_trainings(self._data_folder, tracking_uri=uri, max_results=MAX_LISTED)
            self._stored, self._found = {one.run_id: _line(one) for one in found}, {}
            self._fault = ""
            self._due = time.monotonic() + REST * (time.thread_time() - begun)
        except LabError as error:
            self._fault = str(error)
        except Exception as error:
            LOG.exception("the store was not read")
            self._fault = failure_words(error)
        self._due = max(self._due, time.monotonic() + STORE_SECONDS)
        self._complete = True

    def _looked_up(self, run_id: str) -> RunLine | None:
        self._loader.need(*STORE)
        try:
            return _line(read_run(self._data_folder, run_id, tracking_uri=self._tracking_uri))
        except LabError:
            return None


def _line(run: RunSummary) -> RunLine:
    rate, at = run.win_rate, run.metrics.get(names.LESSON_NUMBER)
    passed = run.tags.get("lab.lessons_passed", "")
    lesson = "" if at is None else f"lesson {at:.0f}"
    if passed:
        lesson = f"{run.tags.get('lab.lesson', '')}, {passed} passed"
    returns = (run.metrics.get(key) for key in (names.EVAL_RETURN, names.EPISODE_RETURN))
    return RunLine(
        run_id=run.run_id,
        name=run.name,
        state=run.status,
        begun_ms=int(run.started.timestamp() * 1000),
        win_rate=None if rate is None else rate.value,
        lower=None if rate is None else run.metrics.get(names.lower_bound(rate.measure)),
        upper=None if rate is None else run.metrics.get(names.upper_bound(rate.measure)),
        mean_return=next((one for one in returns if rate is None and one is not None), None),
        experiment=run.experiment,
        experiment_id=run.experiment_id,
        lesson=lesson,
        tags=own_tags(run.tags),
        saved=saved_agents(run.tags),
        world=run.tags.get(WORLD_TAG, ""),
    )


WATCH_SECONDS = 15.0  # for which one request has a run show itself
RENEW_SECONDS = 5.0
ALIVE_SECONDS = 1.0  # between two looks whether its process lives
ANSWER_SECONDS = 60.0  # a run answers where a rollout begins
PAUSE = 0.05


@dataclass(frozen=True)
class Rate:
    """A share of won episodes and its interval."""

    win_rate: float | None
    lower: float
    upper: float


@dataclass(frozen=True)
class HeldWeights:
    """Weights of a target's difficulties, and which of them are locked."""

    weights: tuple[float, ...]
    locked: tuple[bool, ...]

    def __post_init__(self) -> None:
        MixWeights(self._keys(), self.weights, self.locked)  # which refuses an invalid mix

    def _keys(self) -> tuple[Key, ...]:
        return tuple(range(1, len(self.weights) + 1))


@dataclass(frozen=True)
class HeldTargets(HeldWeights):
    """Weights of the lesson's targets."""

    targets: tuple[str, ...]

    def _keys(self) -> tuple[Key, ...]:
        return self.targets


@dataclass(frozen=True)
class ShownLesson(LessonReport):
    """A lesson's report, and in the page's words, which are in per cent, what it says."""

    asked_words: str = field(init=False, default="")
    found_words: str = field(init=False, default="")
    proof_words: str = field(init=False, default="")
    level_words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        for name, words in (
            ("asked_words", self.asked),
            ("found_words", self.found),
            ("proof_words", self.proof()),
            ("level_words", self.level),
        ):
            object.__setattr__(self, name, words)


@dataclass(frozen=True)
class Status:
    """How a run stands, as it shows itself: see `training.callbacks.assembly`."""

    step: int  # environment steps
    total_steps: int
    steps_per_second: float | None
    lesson: int  # from 0
    lessons: list[ShownLesson]
    finished: bool
    episodes: int  # counted ones of the lesson
    window: int  # of these, how many the win rate is taken over
    win_rate: Rate
    threshold: float | None
    min_lesson_length: int
    log_evidence: float | None
    log_bound: float | None
    measured: Measured | None
    cells: list[CellReport]
    targets: HeldTargets
    difficulty: dict[str, HeldWeights]  # by target
    has_wins: bool = True
    mean_return: float | None = None  # of these episodes, where none can be won
    evidence_words: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.log_evidence is not None and self.log_bound is not None:
            words = shown_evidence(odds(self.log_evidence), odds(self.log_bound))
            object.__setattr__(self, "evidence_words", words)


class LiveRun:
    """A run as pages watch it; its last state is kept when it ends."""

    def __init__(self, run_list: RunList, run_id: str) -> None:
        self.run_id = run_id
        self._list = run_list
        self.status: Any = None  # the last that the run has shown; None: none yet
        self._fault = ""  # of the file that holds it
        self._status_time = 0
        self._line: dict[str, Any] = {}
        self._looked = self._renewed = -ANSWER_SECONDS
        self._asked_for_agent = False  # in the last request to watch
        self._watching: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()
        self._held: dict[str, Any] = {}  # by target what was moved, and from which step it holds
        self.wants_agent_until = 0.0  # by `time.monotonic`

    async def look(self) -> dict[str, Any]:
        """How the run stands: its line of the list, its last state, and whether that is live."""
        now = time.monotonic()
        if now - self._looked >= ALIVE_SECONDS:
            self._line = await in_thread(self._list_line)
            self._looked = now  # now that it has: a page that leaves breaks a look off
        if self._line["state"] == "trains":
            self._keep_watching(now)
        await in_thread(self._read_status)  # what was shown last stays in the folder
        told = {"status": self.status, "fault": self._fault, "held": {**self._held}}
        return {**self._line, **told}

    def hold(self, target: str, weights: Mapping[str, Any]) -> None:
        """Note for all pages what the run has answered about `target`; "" for all targets."""
        self._held[target] = dict(weights)

    def find(self) -> RunFolder | None:
        """The folder of the run, while it has one."""
        return self._list.find(self.run_id)

    def folder(self) -> RunFolder:
        """The folder of the run, which trains. Raises ConfigurationError where it does not."""
        folder = self._list.find(self.run_id)
        if folder is None or folder.is_free:
            raise ConfigurationError(f"run {self.run_id[:12]} no longer trains here")
        return folder

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The run's answer to a request; requests reach it in the order of the calls.

        Raises ConfigurationError where it does not train or refuses, LabError where it is silent.
        """
        async with self._sending:
            folder = await in_thread(self.folder)
            channel = ControlChannel(folder.path)
            key = await in_thread(channel.send, document)
        until = time.monotonic() + ANSWER_SECONDS
        while (answer := channel.wait(key, 0.0, still_open=lambda: True)) is None:
            await asyncio.sleep(PAUSE)
            if time.monotonic() > until or await in_thread(lambda: folder.is_free):
                channel.withdraw(key)
                raise LabError(f"run {self.run_id[:12]} did not answer; nothing was changed")
        if "error" in answer:
            raise ConfigurationError(str(answer["error"]))
        return dict(answer)

    def _list_line(self) -> dict[str, Any]:
        line = self._list.line(self.run_id)
        if line is not None:
            return vars(line) | {"run_id": self.run_id}
        if not self._line or self._line.get("experiment_id"):  # the store has it no more
            return {"run_id": self.run_id, "name": self._line.get("name", ""), "state": "unknown"}
        if self._line["state"] == "trains":  # another store has it, and its folder is gone
            return {**self._line, "state": "FINISHED", "resumable": False}
        return self._line

    def _keep_watching(self, now: float) -> None:
        """Have the run show itself a while longer."""
        wants_agent = now < self.wants_agent_until
        is_known = wants_agent <= self._asked_for_agent
        if is_known and now - self._renewed < RENEW_SECONDS:
            return
        if self._watching is None or self._watching.done():
            self._renewed, self._asked_for_agent = now, wants_agent
            self._watching = asyncio.create_task(self._ask_to_watch(wants_agent))

    async def _ask_to_watch(self, wants_agent: bool) -> None:
        request = {"kind": "watch", "seconds": WATCH_SECONDS, "agent": wants_agent}
        with suppress(LabError):
            await self.ask(request)

    def _read_status(self) -> None:
        folder = self._list.folders.get(self.run_id)
        if folder is None:
            return
        place = LiveFolder.of(folder.path).status
        with suppress(OSError):
            changed = place.stat().st_mtime_ns
            if changed != self._status_time:
                self._status_time = changed
                try:
                    self.status, self._fault = plain(read_document(place, _STATUS)), ""
                except LabError as error:
                    self.status, self._fault = None, str(error)


_STATUS = TypeAdapter(Status)

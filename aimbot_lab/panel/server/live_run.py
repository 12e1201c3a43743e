"""A run that is watched: what it shows of itself, and requests to it."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from aimbot_lab.curriculum.mix import Key, MixWeights
from aimbot_lab.curriculum.reports import CellReport, LessonReport, Measured
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.loading import in_thread
from aimbot_lab.panel.server.messages import plain, read_document
from aimbot_lab.panel.server.run_list import RunList
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.run_folder import RunFolder

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
        MixWeights(self._keys(), self.weights, self.locked)  # which refuses what is no mix

    def _keys(self) -> tuple[Key, ...]:
        return tuple(range(1, len(self.weights) + 1))


@dataclass(frozen=True)
class HeldTargets(HeldWeights):
    """Weights of the lesson's targets."""

    targets: tuple[str, ...]

    def _keys(self) -> tuple[Key, ...]:
        return self.targets


@dataclass(frozen=True)
class Status:
    """How a run stands, as it shows itself: see `training.callbacks.live_publication`."""

    step: int  # environment steps
    total_steps: int
    steps_per_second: float | None
    lesson: int  # from 0
    lessons: list[LessonReport]
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


class LiveRun:
    """A run as pages watch it; its last state is kept when it ends."""

    def __init__(self, run_list: RunList, run_id: str) -> None:
        self.run_id = run_id
        self._list = run_list
        self._status: Any = None
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
        told = {"status": self._status, "fault": self._fault, "held": {**self._held}}
        return {**self._line, **told}

    def hold(self, target: str, weights: Mapping[str, Any]) -> None:
        """Note for all pages what the run has answered about `target`; "" for all targets."""
        self._held[target] = dict(weights)

    @property
    def status(self) -> Any:
        """The last state that the run has shown; None: none yet."""
        return self._status

    def find(self) -> RunFolder | None:
        """The folder of the run, while it has one."""
        return self._list.find(self.run_id)

    def folder(self) -> RunFolder:
        """The folder of the run, which trains. Raises ConfigurationError where it does not."""
        folder = self._list.find(self.run_id)
        if folder is None or folder.is_free:
            raise ConfigurationError(f"run {self.run_id[:12]} does not train here any more")
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
                    self._status, self._fault = plain(read_document(place, _STATUS)), ""
                except LabError as error:
                    self._status, self._fault = None, str(error)


_STATUS = TypeAdapter(Status)

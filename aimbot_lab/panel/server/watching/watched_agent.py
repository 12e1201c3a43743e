"""What plays in the part Watch: the newest weights of a run, in its present mix."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.experiment.runs.run_record import RESOLVED_NAME
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.league.opponents import Store
from aimbot_lab.panel.server.watching.live_play import (
    KeptSnapshots,
    LivePlay,
    PastAgents,
    SnapshotParts,
)
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.control_channel import LiveFolder
from aimbot_lab.tracking.runs.history import download_artifact
from aimbot_lab.tracking.runs.run_folder import RunFolder
from aimbot_lab.tracking.runs.run_summary import LAST
from aimbot_lab.training.agents.agent_files import DESCRIPTION, SavedAgent, load_agent
from aimbot_lab.worlds.registry import code_of, spec_of

NOT_YET = (
    "the run has shown no agent yet: it shows one where a rollout begins, after its first update"
)


class NotYetError(LabError):
    """There is nothing to watch so far."""


class PlayableRun(Protocol):
    """What is known of a run that is watched."""

    @property
    def run_id(self) -> str:
        """Its id."""
        ...

    @property
    def status(self) -> Any:
        """The last state that it has shown; None: none yet."""
        ...

    def find(self) -> RunFolder | None:
        """Its folder, while it has one."""
        ...


def code_of_run(run: PlayableRun, data_folder: DataFolder, *, uri: str | None) -> NamedCode | None:
    """The code that the world of `run` is made of; None: it needs none of a user's own."""
    folder = run.find()
    if folder is not None and not folder.is_free:
        return code_of(load_curriculum(folder.path / "checkpoints" / RESOLVED_NAME).config.env)

    def fetch(name: str) -> Path:
        return download_artifact(data_folder, run.run_id, name=name, tracking_uri=uri)

    return code_of(load_curriculum(fetch(RESOLVED_NAME), find=fetch).config.env)


class WatchedAgent:
    """The newest agent of a run that trains; of one that is over, its last.

    Or that of the `name` under which the run saved it on request.
    """

    def __init__(
        self, run: PlayableRun, data_folder: DataFolder, *, uri: str | None, name: str = ""
    ) -> None:
        self._run, self._data_folder, self._uri, self._name = run, data_folder, uri, name
        self._loaded: SavedAgent | None = None
        self._time = 0
        self._tracked: TrackedAgent | None = None
        self._kept: PastAgents | None = None
        self._looked = False  # for those that were kept
        self.folder = None if name else self._live_folder()
        self.config = self._config()
        self.play = LivePlay(self.config, self.newest, self.mix, self.past)

    def newest(self) -> SavedAgent:
        """The newest weights. Raises NotYetError where the run has shown none yet."""
        if self.folder is not None:
            agent = LiveFolder.of(self.folder).agent
            with suppress(OSError):
                changed = (agent / DESCRIPTION).stat().st_mtime_ns
                if changed != self._time:
                    self._loaded, self._time = load_agent(agent), changed
        if self._loaded is None:
            raise NotYetError(NOT_YET)
        return self._loaded

    def past(self, saved: SavedAgent) -> PastAgents | None:
        """The past selves of `saved`; None where it has none."""
        if self.config.self_play is None:
            return None
        if self.folder is not None:
            return SnapshotParts(self.folder / "checkpoints", saved)
        assert self._tracked is not None
        if not self._looked:
            self._looked = True
            with suppress(LabError):  # a run that was stopped has kept none
                self._kept = KeptSnapshots(self._tracked, Store(self._data_folder, self._uri))
        return self._kept

    def mix(self) -> Scenario | None:
        """What the run draws now, with the parameters of its lesson; None: not known."""
        return shown_mix(self.config, self._run.status)

    def _live_folder(self) -> Path | None:
        folder = self._run.find()
        return None if folder is None or folder.is_free else folder.path

    def _config(self) -> CurriculumFile:
        """What the run trains by; of one that is over the agent comes with it."""
        if self.folder is not None:
            place = self.folder / "checkpoints" / RESOLVED_NAME
            return load_curriculum(place).config
        found = self._tracked = fetch_agent(
            self._run.run_id,
            self._name or LAST,
            data_folder=self._data_folder,
            tracking_uri=self._uri,
        )
        self._loaded = found.saved
        return found.config


def shown_mix(config: CurriculumFile, status: Any) -> Scenario | None:
    """What a run of `config` draws by its `status`; None: not known."""
    if not status or not 0 <= status["lesson"] < len(config.lessons):
        return None
    known = spec_of(config.learned_env).difficulties
    written = lesson_scenario(config.lessons[status["lesson"]], known)
    pairs = zip(status["targets"]["targets"], status["targets"]["weights"], strict=False)
    targets = {name: weight for name, weight in pairs if weight > 0 and name in known}
    if not targets:
        return written
    levels = {name: tuple(one["weights"]) for name, one in status["difficulty"].items()}
    levels = {name: one for name, one in levels.items() if name in targets}
    return replace(written, targets=targets, difficulty=levels)

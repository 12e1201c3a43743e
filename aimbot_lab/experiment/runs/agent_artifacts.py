"""A training's agents as artifacts of its run, or wherever there is room for them."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.agent_names import AGENT_FOLDER, saved_name, saved_tag
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agents.agent_files import DISK_ERRORS, save_agent
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training


class AgentsOnRequest:
    """Keeps the present agent of a run that trains, where that is asked for, as `agent/step-N`."""

    def __init__(self, tracker: Tracker, *, env: WorldSettings, train: TrainSettings) -> None:
        self._tracker, self._env, self._train = tracker, env, train

    def keep_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """`about` with the agent's name, or why it could not be kept; the training goes on."""
        name = saved_name(about["step"])
        try:
            with tempfile.TemporaryDirectory("-agent") as folder:
                paths = save_agent(
                    policy, Path(folder), env=self._env, train=self._train, about={**about}
                )
                kept = [self._tracker.log_file(path, f"{AGENT_FOLDER}/{name}") for path in paths]
        except DISK_ERRORS:
            kept = [False]
        if not all(kept):
            return {"error": "no agent was saved: the disk has no room for it"}
        self._tracker.set_tags(saved_tag(name, lesson=about["lesson"]))
        return {**about, "name": name}


def log_agents(training: Training, tracker: Tracker, *, data_folder: DataFolder) -> Path | None:
    """Keep the last and the best agent as artifacts `agent/last` and `agent/best`.

    Where the disk has no room for that: the folder in which they lie instead, else None.
    Raises StoreError where they can be saved nowhere.
    """
    for staging in (None, data_folder.root):  # None: where temporary files go
        with suppress(OSError), tempfile.TemporaryDirectory("-agent", dir=staging) as folder:
            files = _saved(training, Path(folder))
            kept = [tracker.log_file(path, f"{AGENT_FOLDER}/{which}") for which, path in files]
            if kept and all(kept):
                _log_pool(training, tracker, Path(folder) / "pool")
                return None
    for place in (os.getcwd, tempfile.gettempdir):
        with suppress(OSError):
            rescued = Path(place()) / f"aimbot-lab-agent-{tracker.run_id}"
            if _saved(training, rescued):
                return rescued
    raise StoreError(f"the agent of run {tracker.run_id} is lost: no folder had room for it")


def _log_pool(training: Training, tracker: Tracker, folder: Path) -> None:
    """Keep snapshots and games of a training by self-play as artifacts `pool` and `games.csv`."""
    if training.self_play is not None:
        for place, path in training.self_play.save(folder):
            tracker.log_file(path, place)


def _saved(training: Training, folder: Path) -> list[tuple[str, Path]]:
    """The files of the agents in `folder`, each with the agent's name; none where it is full."""
    try:
        saved = training.save_agents(folder)
    except Exception:  # noqa: BLE001 safetensors has an error of its own for a full disk
        shutil.rmtree(folder, ignore_errors=True)
        return []
    return [(which, path) for which, paths in saved.items() for path in paths]

"""Snapshots of tracked runs by self-play, read back."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import download_artifact
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.self_play.pool_files import (
    POOL_FOLDER,
    STEPS_NAME,
    SUFFIX,
    read_snapshot,
    read_steps,
)

SHORT_ID = 8


class TrackedSnapshot(NamedTuple):
    """A snapshot of a run."""

    name: str
    step: int  # environment steps
    agent: Agent


class TrackedSnapshots(NamedTuple):
    """Those that can be read, and of the others why not, each with its run."""

    whole: tuple[TrackedSnapshot, ...]
    damaged: tuple[str, ...]


class TrackedPool:
    """All snapshots of the run that `last` is of, among the run's artifacts."""

    def __init__(
        self, last: TrackedAgent, *, data_folder: DataFolder, tracking_uri: str | None = None
    ) -> None:
        self._saved, self._run_id = last.saved, last.run.run_id
        self._data_folder, self._tracking_uri = data_folder, tracking_uri

    def _fetch(self, name: str) -> Path:
        path = f"{POOL_FOLDER}/{name}"
        return download_artifact(
            self._data_folder, self._run_id, name=path, tracking_uri=self._tracking_uri
        )

    def listed(self) -> list[tuple[str, int]]:
        """Names and steps. Raises LabError, which says why, where their list can't be read."""
        try:
            return read_steps(self._fetch(STEPS_NAME).read_text(encoding="utf-8"))
        except (StoreError, OSError, ValueError) as error:
            raise LabError(str(error)) from error

    def read(self, name: str) -> Agent:
        """One of them. Raises LabError where it can't be read."""
        return read_snapshot(self._fetch(name + SUFFIX), self._saved.train, self._saved.agent.spec)


def fetch_snapshots(
    last: TrackedAgent,
    chosen: Callable[[int], Iterable[int]],
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> TrackedSnapshots:
    """Of the N snapshots of the run that `last` is of those at the places `chosen(N)`.

    None of a run without self-play.
    """
    if last.config.self_play is None:
        return TrackedSnapshots((), ())
    pool = TrackedPool(last, data_folder=data_folder, tracking_uri=tracking_uri)
    shown = f"run {last.run.run_id[:SHORT_ID]}"
    try:
        listed = pool.listed()
    except LabError as error:
        return TrackedSnapshots((), (f"{shown}: {POOL_FOLDER}: {error}",))
    whole, damaged = [], []
    for place in chosen(len(listed)):
        name, step = listed[place]
        try:
            whole.append(TrackedSnapshot(name, step, pool.read(name)))
        except LabError as error:
            damaged.append(f"{shown}: {error}")
    return TrackedSnapshots(tuple(whole), tuple(damaged))

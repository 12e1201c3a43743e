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
    run_id = last.run.run_id

    def fetch(name: str) -> Path:
        path = f"{POOL_FOLDER}/{name}"
        return download_artifact(data_folder, run_id, name=path, tracking_uri=tracking_uri)

    shown = f"run {run_id[:SHORT_ID]}"
    try:
        listed = read_steps(fetch(STEPS_NAME).read_text(encoding="utf-8"))
    except (StoreError, OSError, ValueError) as error:
        return TrackedSnapshots((), (f"{shown}: {POOL_FOLDER}: {error}",))
    whole, damaged = [], []
    for place in chosen(len(listed)):
        name, step = listed[place]
        try:
            agent = read_snapshot(fetch(name + SUFFIX), last.saved.train, last.saved.agent.spec)
        except LabError as error:
            damaged.append(f"{shown}: {error}")
        else:
            whole.append(TrackedSnapshot(name, step, agent))
    return TrackedSnapshots(tuple(whole), tuple(damaged))

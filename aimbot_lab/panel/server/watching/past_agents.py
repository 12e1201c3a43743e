"""Past selves of a watched agent: the snapshots of its self-play."""

from pathlib import Path

from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent
from aimbot_lab.league.opponents import Store, pool_of, snapshots_of
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.self_play.pool_files import read_part

PART = "part-"  # what the files of a checkpoint's parts begin with
SNAPSHOTS = "snapshot-*"


class KeptSnapshots:
    """Those of a run that is over, among its artifacts."""

    def __init__(self, agent: TrackedAgent, store: Store) -> None:
        self._pool = pool_of(agent, store=store)
        self._listed = snapshots_of(agent, store=store)

    def names(self) -> list[str]:
        """What they are called, the first first."""
        return [name for name, _ in self._listed]

    def agent(self, name: str) -> Agent:
        """One of them. Raises LabError where it can't be read."""
        return self._pool.read(name)


class SnapshotParts:
    """Those of a run that trains, in its checkpoints; `saved` is any agent of it."""

    def __init__(self, checkpoints: Path, saved: SavedAgent) -> None:
        self._checkpoints, self._saved = checkpoints, saved

    def names(self) -> list[str]:
        """What they are called, the first first; none before the first checkpoint."""
        found = self._checkpoints.glob(PART + SNAPSHOTS)
        return sorted(path.name.removeprefix(PART) for path in found)

    def agent(self, name: str) -> Agent:
        """One of them. Raises LabError where it can't be read."""
        saved = self._saved
        return read_part(self._checkpoints / f"{PART}{name}", saved.train, saved.agent.spec)

"""Agents of tracked runs, read back with the curriculum that they learned by."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.validation import MayRun
from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
from aimbot_lab.experiment.runs.stored_curriculum import noted_in, stored_curriculum
from aimbot_lab.experiment.runs.trainings import find_training
from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.delivery import FilesHeldError
from aimbot_lab.tracking.runs.agent_names import AGENT_FOLDER, saved_agents
from aimbot_lab.tracking.runs.history import download_artifact
from aimbot_lab.tracking.runs.run_summary import RunSummary
from aimbot_lab.tracking.store_errors import NoArtifactError
from aimbot_lab.training.agents.agent_files import DESCRIPTION, WEIGHTS, SavedAgent, load_agent


@dataclass(frozen=True)
class TrackedAgent:
    """An agent, the run it is from, and the run's curriculum."""

    run: RunSummary
    which: str  # a name as `agent_names` has them
    config: CurriculumFile
    saved: SavedAgent

    @property
    def step(self) -> int:
        """The environment step at which it was saved."""
        return int(self.saved.about.get("step", 0))


class AgentFiles(NamedTuple):
    """Where the files of a run's agent can be read."""

    run: RunSummary
    folder: Path


def fetch_agent(
    run: str,
    which: str,
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
    may_run: MayRun | None = None,
) -> TrackedAgent:
    """The `which` agent ("best", "last", "step-N") of the one run whose id begins with `run`.

    Code that its world names may run where `may_run` says so; without it, where a training in
    `data_folder` began with it.

    Before that, what dead processes left undelivered is delivered: the agent may be among it.
    Raises ConfigurationError where no single training is meant, LabError, which says why, where it
    has no such agent or its files can't be read.
    """
    found, folder = fetch_agent_files(run, which, data_folder=data_folder, uri=tracking_uri)

    def fetch(name: str) -> Path:
        return download_artifact(data_folder, found.run_id, name=name, tracking_uri=tracking_uri)

    curriculum = stored_curriculum(fetch, may_run=may_run or noted_in(data_folder))
    return TrackedAgent(found, which, curriculum.config, load_agent(folder))


def fetch_agent_files(
    run: str, which: str, *, data_folder: DataFolder, uri: str | None = None
) -> AgentFiles:
    """The files of the `which` agent of the one run that is meant; raises as `fetch_agent`."""
    close_orphan_runs(data_folder)
    found = find_training(run, data_folder, tracking_uri=uri)
    place = f"{AGENT_FOLDER}/{which}"
    try:
        folder = download_artifact(data_folder, found.run_id, name=place, tracking_uri=uri)
        for name in (WEIGHTS, DESCRIPTION):
            if not (folder / name).is_file():  # what saves it may be at work
                raise StoreError(f"{place}/{name} is missing")
    except StoreError as error:
        raise LabError(_without_agent(found, which, error)) from error
    return AgentFiles(found, folder)


def _without_agent(run: RunSummary, which: str, error: StoreError) -> str:
    """Why there is nothing to fetch: agents are saved at the end of a training, or on request."""
    if isinstance(error, FilesHeldError) and not isinstance(error, NoArtifactError):
        reason = str(error)
    elif saved := saved_agents(run.tags):
        reason = f"it was asked to save {', '.join(saved)}"
    elif run.status == "RUNNING":
        reason = (
            "it still trains, and its agents are saved when that ends; the button Save agent of "
            "aimbot-lab panel saves one before"
        )
    elif run.status == "KILLED":
        reason = f"it was stopped; aimbot-lab resume {run.run_id[:12]} resumes it"
    else:
        reason = str(error)
    return f"run {run.run_id} has no {which} agent that can be read: {reason}"

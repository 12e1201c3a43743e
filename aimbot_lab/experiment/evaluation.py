"""A tracked run's agent, evaluated on new seeds."""

from dataclasses import dataclass, replace
from pathlib import Path

from aimbot_lab.curriculum.cells import lesson_cells
from aimbot_lab.evaluation.evaluate import CellScore, evaluate
from aimbot_lab.experiment.document import load_curriculum
from aimbot_lab.experiment.run import AGENT_FOLDER
from aimbot_lab.faces.registry import make_world
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, list_runs
from aimbot_lab.tracking.reaper import reap_dead_runs
from aimbot_lab.training.agents import DESCRIPTION, WEIGHTS, load_agent


@dataclass(frozen=True)
class EvaluationRequest:
    """Which agent to evaluate, and on what."""

    run: str  # the run's id, or the beginning of it
    agent: str  # "best" or "last"
    episodes: int  # of each cell
    seed: int


@dataclass(frozen=True)
class Evaluated:
    """Scores of a run's agent."""

    run_id: str
    scores: tuple[CellScore, ...]


def evaluate_run(
    request: EvaluationRequest, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Evaluated:
    """Scores in every cell of the last lesson of the run's curriculum.

    Before that, what dead processes left undelivered is delivered: the agent may be among it.
    Raises ConfigurationError where no single run is meant, LabError where its files are missing.
    """
    reap_dead_runs(data_folder)
    run_id = find_run(request.run, data_folder, tracking_uri=tracking_uri)

    def fetch(name: str) -> Path:
        return download_artifact(data_folder, run_id, name=name, tracking_uri=tracking_uri)

    folder = f"{AGENT_FOLDER}/{request.agent}"
    weights = [fetch(f"{folder}/{name}") for name in (WEIGHTS, DESCRIPTION)]
    saved = load_agent(weights[0].parent)
    config = load_curriculum(fetch("resolved.yaml")).config
    world = make_world(replace(saved.env, num_envs=request.episodes))
    cells = lesson_cells(config.lessons[-1], world.spec.difficulties)
    scores = [
        score
        for cell in cells  # each with a player that remembers nothing of the cell before
        for score in evaluate(world, saved.agent.player(world), (cell,), seed=request.seed)
    ]
    return Evaluated(run_id, tuple(scores))


def find_run(run: str, data_folder: DataFolder, *, tracking_uri: str | None = None) -> str:
    """The id of the one run that begins with `run`. Raises ConfigurationError otherwise."""
    found = list_runs(data_folder, tracking_uri=tracking_uri, max_results=50_000)
    matches = [summary.run_id for summary in found if run and summary.run_id.startswith(run)]
    if run in matches:
        return run
    if len(matches) != 1:
        reason = "several runs begin so" if matches else "no such run"
        raise ConfigurationError(f"{run!r}: {reason}; aimbot-lab runs lists them")
    return matches[0]

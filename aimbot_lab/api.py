"""Training, evaluating, comparing and loading agents from Python.

`aimbot_lab.train`, `evaluate`, `compare` and `load`; README.md beside this module has examples.
They do the same as the commands of these names, and raise `foundation.errors.LabError` where
those print an error. Nothing heavy is imported before one of them is called.
"""

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.tracking.tracker import ALLOWED, is_agent_name

if TYPE_CHECKING:
    from aimbot_lab.experiment.analysis.comparison import Comparison
    from aimbot_lab.experiment.analysis.configurations import ComparedConfigurations
    from aimbot_lab.experiment.analysis.evaluation import Evaluated
    from aimbot_lab.experiment.runs.result import RunResult
    from aimbot_lab.training.agents.agent_files import SavedAgent


MAX_EPISODES = 65_536
GROUPS = ("run", "config")

DataDir = str | PathLike[str] | None  # None: as the command line finds it


def check_training(file: object, overrides: object, tags: object, callbacks: object) -> None:
    """Raise ConfigurationError for what `train` can't be given."""
    _require(isinstance(file, str | PathLike), "file", "a path or a name", file)
    _require(_is_list(overrides), "overrides", "a list of KEY=VALUE", overrides)
    usable = tags is None or isinstance(tags, Mapping)
    _require(usable, "tags", "a mapping of names to texts", tags)
    _require(_is_list(callbacks), "callbacks", "a list of stable-baselines3's callbacks", callbacks)


def check_playing(episodes: object, agent: object) -> None:
    """Raise ConfigurationError for what neither `evaluate` nor `compare` can be given."""
    whole = isinstance(episodes, int) and 1 <= episodes <= MAX_EPISODES
    _require(whole, "episodes", f"a whole number from 1 to {MAX_EPISODES}", episodes)
    _require(is_agent_name(agent), "agent", ALLOWED, agent)


def check_runs(runs: object, by: object) -> None:
    """Raise ConfigurationError for runs or groups that `compare` can't be given."""
    _require(_is_list(runs), "runs", "a list of runs", runs)
    assert isinstance(runs, Sequence)
    if len(runs) < 2:
        raise ConfigurationError(f"runs: must be at least two (got {len(runs)})")
    _require(by in GROUPS, "by", " or ".join(map(repr, GROUPS)), by)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _require(holds: bool, name: str, allowed: str, got: object) -> None:
    if not holds:
        raise ConfigurationError(f"{name}: must be {allowed} (got {shortened(repr(got), 80)})")


def train(
    file: str | PathLike[str],
    overrides: Sequence[str] = (),
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    init_from: str | None = None,
    callbacks: Sequence[Any] = (),
    progress: bool = False,
    data_dir: DataDir = None,
) -> "RunResult":
    """Train by the curriculum in `file`, with each `KEY=VALUE` of `overrides`, and track the run.

    The run's name is `name`, else MLFLOW_RUN_NAME, else the curriculum's. `init_from` is a run, a
    folder with an agent, or a file of stable-baselines3's `save` to start from. `callbacks` are
    called in addition to those that the file names; a resumed run does not have them. `progress`
    prints lines to stderr, which a notebook shows, too. A run that used up its steps before its
    last lesson was passed returns with status FAILED, one that a callback stopped with KILLED.
    Raises LabError for a mistake in an argument or the file, and for a run that failed.
    """
    from aimbot_lab.cli.view import PlainView
    from aimbot_lab.experiment.config.document import load_curriculum
    from aimbot_lab.experiment.runs.agents import find_initial_agent
    from aimbot_lab.experiment.runs.run import run_curriculum
    from aimbot_lab.experiment.runs.run_record import RunRequest
    from aimbot_lab.foundation.named_code import always
    from aimbot_lab.training.run_hooks import SilentObserver

    check_training(file, overrides, tags, callbacks)
    place, name = _place(data_dir), name or os.environ.get("MLFLOW_RUN_NAME") or None
    curriculum = load_curriculum(file, overrides, may_run=always)
    start = None
    if init_from is not None:
        start = find_initial_agent(init_from, place, curriculum.config)
    request = RunRequest(
        curriculum,
        place,
        name,
        tags=dict(tags or {}),
        start=start,
        callbacks=callbacks,
    )
    observer = PlainView() if progress else SilentObserver()
    return run_curriculum(request, observer, should_stop=lambda: False)


def evaluate(
    run: str,
    *,
    episodes: int = 200,
    seed: int = 1,
    agent: str = "last",
    temperature: float | None = None,
    baselines: bool = True,
    data_dir: DataDir = None,
) -> "Evaluated":
    """Play a run's agent, and baselines, for `episodes` of every cell of its last lesson.

    `temperature` is that of the agent's first row: 1 samples as in training, 0 takes the likeliest
    action, None is the recommended one for its algorithm. Raises LabError for an unknown run.
    """
    from aimbot_lab.evaluation.temperature import Temperature
    from aimbot_lab.experiment.analysis.evaluation import (
        EvaluationRequest,
        evaluate_agent,
    )
    from aimbot_lab.experiment.analysis.matches import opponents_of
    from aimbot_lab.experiment.runs.agents import fetch_agent

    check_playing(episodes, agent)
    played = None if temperature is None else Temperature(temperature)
    request = EvaluationRequest(episodes, seed, baselines, played)
    place = _place(data_dir)
    fetched = fetch_agent(run, agent, data_folder=place)
    matches = opponents_of(
        fetched, episodes=episodes, seed=seed, scripts=baselines, data_folder=place
    )
    return evaluate_agent(fetched, request, on_cell=_unheard, matches=matches)


def compare(
    runs: Sequence[str],
    *,
    by: str = "run",
    episodes: int = 200,
    seed: int = 1,
    agent: str = "last",
    data_dir: DataDir = None,
) -> "Comparison | ComparedConfigurations":
    """Compare runs on the same episodes: each with the first, or by "config" over their seeds.

    Raises LabError for unknown runs, and for runs that can't be compared.
    """
    from aimbot_lab.experiment.analysis.comparison import ComparisonRequest, compare_agents
    from aimbot_lab.experiment.analysis.configurations import compare_configurations
    from aimbot_lab.experiment.analysis.learning_curve import read_curves
    from aimbot_lab.experiment.runs.agents import fetch_agent

    check_runs(runs, by)
    check_playing(episodes, agent)
    place = _place(data_dir)
    request = ComparisonRequest(episodes=episodes, seed=seed, margin=0.05)
    agents = [fetch_agent(run, agent, data_folder=place) for run in runs]
    if by == "config":
        return compare_configurations(agents, request, on_cell=_unheard)
    curves = read_curves([(one.run, one.config) for one in agents], data_folder=place)
    return compare_agents(agents, curves, request, on_cell=_unheard)


def load(
    source: str | PathLike[str], *, agent: str = "last", data_dir: DataDir = None
) -> "SavedAgent":
    """The agent in the folder `source`, or the agent of the run `source` (an id, or "latest").

    Runs nothing that the agent's files name. Raises LabError for unknown runs and invalid files.
    """
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.training.agents.agent_files import load_agent

    if Path(source).exists():
        return load_agent(source)
    return fetch_agent(str(source), agent, data_folder=_place(data_dir)).saved


def _place(data_dir: DataDir) -> Any:
    from aimbot_lab.tracking.data_folder import locate_data_folder

    return locate_data_folder(None if data_dir is None else Path(data_dir))


def _unheard(*_: str) -> None:
    """Progress that is not shown."""

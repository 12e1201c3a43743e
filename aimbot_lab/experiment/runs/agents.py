"""Agents of runs: kept as artifacts, read back, and begun with by another run."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_config
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.result import flat_settings
from aimbot_lab.experiment.runs.run_record import (
    START_FOLDER,
    InitialAgent,
    InitialAgentRef,
    close_orphan_runs,
    noted_in,
    stored_curriculum,
)
from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError
from aimbot_lab.foundation.named_code import MayRun
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.tracking.data_folder import DataFolder, FilesHeldError, NoArtifactError
from aimbot_lab.tracking.history import MAX_RUNS, download_artifact, find_run, list_runs
from aimbot_lab.tracking.tracker import (
    AGENT_FOLDER,
    PARENT,
    RunSummary,
    Tracker,
    is_training,
    saved_agents,
    saved_name,
    saved_tag,
)
from aimbot_lab.training.agents.agent_files import (
    DESCRIPTION,
    FAULTS,
    WEIGHTS,
    SavedAgent,
    load_agent,
    policy_of,
    save_agent,
)
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import spec_of, type_of

MAX_NAMED = 3  # trainings named in an error
SHORT_ID = 8

MUST_AGREE = ("train.aim", "train.aim_bins", "train.masks", "train.target", "train.network")
"""Settings of which the network and its actions are made; the world names those of what it sees."""


def find_training(
    run: str, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> RunSummary:
    """The one training whose id begins with `run`, or the "latest".

    Raises ConfigurationError where no single run is meant, and for the run of a sweep or of a
    trial, naming the trainings below it.
    """
    found = find_run(data_folder, run, tracking_uri=tracking_uri)
    if is_training(found):
        return found
    every = list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS)
    raise ConfigurationError(_trained_nothing(found, trainings_below(found, every)))


def trainings_below(run: RunSummary, runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The trainings among `runs` that lie below `run` or below its trials, by their names."""
    parents = {run.run_id, *(one.run_id for one in runs if one.tags.get(PARENT) == run.run_id)}
    below = [one for one in runs if one.tags.get(PARENT) in parents and is_training(one)]
    return sorted(below, key=lambda one: (one.name, one.run_id))


def _trained_nothing(run: RunSummary, below: Sequence[RunSummary]) -> str:
    kind = "a sweep's trial" if PARENT in run.tags else "a sweep"
    named = [f"{one.run_id[:SHORT_ID]} ({one.name})" for one in below[:MAX_NAMED]]
    more = f" and {len(below) - MAX_NAMED} more" if len(below) > MAX_NAMED else ""
    way = f"name a training below it: {', '.join(named)}{more}" if named else "it has none yet"
    return (
        f"run {run.run_id[:SHORT_ID]} ({run.name}) is {kind} and trained nothing itself; {way}; "
        "aimbot-lab runs --all lists them"
    )


@dataclass(frozen=True)
class TrackedAgent:
    """An agent, the run it is from, and the run's curriculum."""

    run: RunSummary
    which: str  # as `fetch_agent` takes it
    config: CurriculumFile
    saved: SavedAgent

    @property
    def step(self) -> int:
        """The environment step at which it was saved."""
        return int(self.saved.about.get("step", 0))


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
) -> tuple[RunSummary, Path]:
    """The one run that is meant, and the folder with its `which` agent's files.

    Raises as `fetch_agent`.
    """
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
    return found, folder


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


def find_initial_agent(
    source: str, data_folder: DataFolder, config: CurriculumFile, *, tracking_uri: str | None = None
) -> InitialAgent:
    """The agent for a training by `config`: in the folder or the file `source`, or a run's last.

    The file is one that stable-baselines3's `save` wrote. A run is meant by its id, the beginning
    of it, or "latest". Raises ConfigurationError where there is no such run, folder or file, or it
    has no agent that can be read.
    """
    path = Path(source).absolute()
    try:
        if path.is_dir():
            return read_initial_agent(path, source=str(path))
        if path.is_file():
            from aimbot_lab.training.agents.library_zip import unpack_zip

            with tempfile.TemporaryDirectory("-start") as folder:
                unpack_zip(path, Path(folder), env=config.env, train=config.train)
                return read_initial_agent(Path(folder), source=str(path))
        run, files = fetch_agent_files(source, "last", data_folder=data_folder, uri=tracking_uri)
    except LabError as error:
        missing = "no such run, and no folder or file with an agent;"
        what = str(error).replace("no such run;", missing)
        raise ConfigurationError(f"--init-from {what}") from error
    return read_initial_agent(files, source=run.run_id)


def read_initial_agent(folder: Path, *, source: str) -> InitialAgent:
    """The agent in `folder`, which came from `source`. Raises LabError where it can't be read."""
    saved = load_agent(folder)
    files = {name: (folder / name).read_bytes() for name in (WEIGHTS, DESCRIPTION)}
    sha256 = hashlib.sha256(files[WEIGHTS]).hexdigest()
    return InitialAgent(
        InitialAgentRef(source, int(saved.about.get("step", 0)), sha256), files, saved
    )


def check_compatible(start: InitialAgent, config: CurriculumFile) -> None:
    """Raise ConfigurationError, in one line, where `config` trains another kind of agent."""
    there, here = start.saved.env.world, config.env.world
    if there != here:
        raise ConfigurationError(f"{start.origin} trained in world {there}, not in {here}")
    reason = next(_incompatibilities(start, config), None)
    if reason is not None:
        raise ConfigurationError(f"--init-from {start.ref.source}: {reason}")


def _incompatibilities(start: InitialAgent, config: CurriculumFile) -> Iterator[str]:
    there, here = start.saved.train.algo, config.train.algo
    if there != here:
        yield f"its agent learned by {there}, this training by {here}"
    theirs = _flat(start.saved.env, start.saved.train)
    ours = _flat(config.env, config.train)
    shape = tuple(f"env.{key}" for key in type_of(config.env).shape_keys)
    for key in dict.fromkeys((*theirs, *ours)):
        if key.startswith((*MUST_AGREE, *shape)) and theirs.get(key) != ours.get(key):
            yield f"{key} is {theirs.get(key)} there, {ours.get(key)} here; both must agree"
    spec = spec_of(config.env)
    trained = start.saved.agent.spec
    # Observations are scaled by their ranges: another range is another observation.
    names = [f"observation {name}" for name in spec.observation_names]
    ranges = [(one.observation_low, one.observation_high) for one in (trained, spec)]
    yield from _other_bounds(names, *ranges)
    # Continuous actions are cut at their bounds: others are other actions.
    names = [f"continuous action {number}" for number in range(spec.continuous)]
    yield from _other_bounds(names, trained.action_bounds, spec.action_bounds)
    try:
        policy_of(start.files[WEIGHTS], config.train, spec)
    except FAULTS as error:
        yield f"its agent has another network: {str(error).splitlines()[0]}"


def _flat(env: Any, train: Any) -> dict[str, str]:
    return dict(flat_settings({"env": asdict(env), "train": asdict(train)}))


def _other_bounds(
    names: Sequence[str],
    there: tuple[Float32Array, Float32Array],
    here: tuple[Float32Array, Float32Array],
) -> Iterator[str]:
    for name, low, high, new_low, new_high in zip(names, *there, *here, strict=True):
        if (low, high) != (new_low, new_high):
            yield (
                f"{name} goes from {low:g} to {high:g} there, from {new_low:g} to {new_high:g} here"
            )


def from_lesson(curriculum: LoadedCurriculum, number: int) -> LoadedCurriculum:
    """`curriculum` without the lessons before `number`, counted from 1.

    Raises ConfigurationError where there is no such lesson.
    """
    lessons = curriculum.config.lessons
    if number > len(lessons):
        noun = "lesson" if len(lessons) == 1 else "lessons"
        raise ConfigurationError(
            f"--start-lesson {number}: the curriculum has {len(lessons)} {noun}"
        )
    if number == 1:
        return curriculum
    return with_config(curriculum, replace(curriculum.config, lessons=lessons[number - 1 :]))


def stored_initial_agent(checkpoints: Path, ref: InitialAgentRef) -> InitialAgent:
    """What a run began with, from the copy in its folder of `checkpoints`.

    Raises LabError where that is missing, damaged or not what the run began with.
    """
    start = read_initial_agent(checkpoints / START_FOLDER, source=ref.source)
    if start.ref.sha256 != ref.sha256:
        raise LabError(f"{checkpoints / START_FOLDER}: is not the agent that the run began with")
    return start


def log_initial_agent(start: InitialAgent, tracker: Tracker) -> None:
    """Keep the agent that a run begins with as the artifact `start`, if the disk has room."""
    with suppress(OSError), tempfile.TemporaryDirectory("-start") as folder:
        start.write(Path(folder))
        for name in start.files:
            tracker.log_file(Path(folder) / name, START_FOLDER)


class AgentsOnRequest:
    """Keeps the present agent of a run that trains, where that is asked for, as `agent/step-N`."""

    def __init__(self, tracker: Tracker, *, env: WorldSettings, train: TrainSettings) -> None:
        self._tracker, self._env, self._train = tracker, env, train

    def keep_agent(self, policy: Any, about: Mapping[str, Any]) -> dict[str, Any]:
        """`about` with the agent's name, or why it could not be kept; the training continues."""
        name = saved_name(about["step"])
        try:
            with tempfile.TemporaryDirectory("-agent") as folder:
                paths = save_agent(
                    policy, Path(folder), env=self._env, train=self._train, about={**about}
                )
                kept = [self._tracker.log_file(path, f"{AGENT_FOLDER}/{name}") for path in paths]
        except OSError:
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
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return []
    return [(which, path) for which, paths in saved.items() for path in paths]

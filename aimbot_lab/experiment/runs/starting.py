"""What a training starts with besides its curriculum: another run's agent, and a later lesson."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.config.document import LoadedCurriculum, with_config
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.differing import flat_settings
from aimbot_lab.experiment.runs.run_record import START_FOLDER, InitialAgentRef
from aimbot_lab.experiment.runs.tracked_agent import fetch_agent_files
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal.durable import put_file
from aimbot_lab.tracking.tracker import Tracker
from aimbot_lab.training.agents.agent_files import (
    DESCRIPTION,
    FAULTS,
    WEIGHTS,
    SavedAgent,
    load_agent,
)
from aimbot_lab.training.agents.weights_file import policy_of
from aimbot_lab.worlds.registry import spec_of, type_of

MUST_AGREE = ("train.aim", "train.aim_bins", "train.masks", "train.target", "train.network")
"""Settings of which the network and its actions are made; the world names those of what it sees."""


@dataclass(frozen=True)
class InitialAgent:
    """An agent to begin with: weights and the scaling inside; the optimiser starts fresh."""

    ref: InitialAgentRef
    files: Mapping[str, bytes]  # of the agent, by name
    saved: SavedAgent

    @property
    def description(self) -> str:
        """Which agent it is, for a person."""
        where = f"the last agent of {self.origin}" if self._of_run else self.origin
        return f"{where}, saved at step {self.ref.step:,}"

    @property
    def origin(self) -> str:
        """What trained it, for a person."""
        source = self.ref.source
        return f"run {source[:12]}" if self._of_run else f"the agent in {source}"

    @property
    def _of_run(self) -> bool:
        return self.ref.source.isalnum()

    def write(self, folder: Path) -> None:
        """Write the agent's files to `folder`, made where it is missing. Raises OSError."""
        folder.mkdir(exist_ok=True)
        for name, data in self.files.items():
            put_file(folder / name, data)


def find_initial_agent(
    source: str, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> InitialAgent:
    """The agent in the folder `source`, or the last one of the one run that is meant by it.

    A run is meant by its id, the beginning of it, or "latest". Raises ConfigurationError where
    there is no such run or folder, or it has no agent that can be read.
    """
    try:
        if Path(source).is_dir():
            return read_initial_agent(Path(source), source=str(Path(source).absolute()))
        found = fetch_agent_files(source, "last", data_folder=data_folder, uri=tracking_uri)
    except LabError as error:
        what = str(error).replace("no such run;", "no such run, and no folder with an agent;")
        raise ConfigurationError(f"--init-from {what}") from error
    return read_initial_agent(found.folder, source=found.run.run_id)


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
    yield from _other_ranges(start.saved.agent.spec, spec)
    yield from _other_bounds(start.saved.agent.spec, spec)
    try:
        policy_of(start.files[WEIGHTS], config.train, spec)
    except FAULTS as error:
        yield f"its agent has another network: {str(error).splitlines()[0]}"


def _flat(env: Any, train: Any) -> dict[str, str]:
    return dict(flat_settings({"env": asdict(env), "train": asdict(train)}))


def _other_ranges(there: WorldSpec, here: WorldSpec) -> Iterator[str]:
    """Observations are scaled by their ranges: another range is another observation."""
    columns = zip(
        here.observation_names,
        *(there.observation_low, there.observation_high),
        *(here.observation_low, here.observation_high),
        strict=True,
    )
    for name, *(low, high, new_low, new_high) in columns:
        if (low, high) != (new_low, new_high):
            yield (
                f"observation {name} goes from {low:g} to {high:g} there, "
                f"from {new_low:g} to {new_high:g} here"
            )


def _other_bounds(there: WorldSpec, here: WorldSpec) -> Iterator[str]:
    """Continuous actions are cut at their bounds: others are other actions."""
    columns = zip(*there.action_bounds, *here.action_bounds, strict=True)
    for number, (low, high, new_low, new_high) in enumerate(columns):
        if (low, high) != (new_low, new_high):
            yield (
                f"continuous action {number} goes from {low:g} to {high:g} there, "
                f"from {new_low:g} to {new_high:g} here"
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

"""The same self-play under each way to choose whom to meet, from several seeds."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.runs.orphan_runs import close_orphan_runs
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.experiment.runs.resumable_runs import resumable_runs
from aimbot_lab.experiment.runs.resume_checks import check_resume
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import list_runs
from aimbot_lab.training.observer import SilentObserver

FILE = Path(__file__).parent / "duel.yaml"
TAG = "lab.bench_self_play"
MAX_RUNS = 10_000  # that are looked through for those of the bench
RATIO, SAMPLING = "self_play.play_against_latest_model_ratio", "self_play.sampling"

SAMPLINGS: Mapping[str, str] = MappingProxyType(
    {
        "latest only": f"{RATIO}=1",
        "uniform": f"{SAMPLING}=uniform",
        "newest": f"{SAMPLING}={{newest: {{share: 0.5}}}}",
        "pfsp": f"{SAMPLING}={{pfsp: {{weighting: hard, power: 2}}}}",
        "rating": f"{SAMPLING}={{rating: {{spread: 200}}}}",
    }
)
"""What is compared, each with the setting that it is."""


@dataclass(frozen=True)
class SelfPlayBench:
    """Trainings of so many `steps` under each sampling, from seeds 1 to `seeds`."""

    steps: int
    seeds: int
    overrides: tuple[str, ...] = ()  # of the curriculum, for all of them

    def trainings(self) -> Iterator["PlannedTraining"]:
        """Seed by seed, so that what is there early is a comparison."""
        for seed in range(1, self.seeds + 1):
            for sampling, setting in SAMPLINGS.items():
                own = (f"seed={seed}", f"train.total_steps={self.steps}", setting)
                curriculum = load_curriculum(FILE, (*self.overrides, *own))
                yield PlannedTraining(sampling, seed, curriculum)


class PlannedTraining(NamedTuple):
    """One of them."""

    sampling: str
    seed: int
    curriculum: LoadedCurriculum

    @property
    def name(self) -> str:
        """What its run is called."""
        return f"{self.sampling}, seed {self.seed}"

    @property
    def key(self) -> str:
        """By which its run is found again: another one for each configuration."""
        return "bench-" + hashlib.sha256(self.curriculum.resolved_text.encode()).hexdigest()[:32]


def trained_run(
    planned: PlannedTraining,
    data_folder: DataFolder,
    *,
    say: Callable[[str], None],
    tracking_uri: str | None = None,
) -> str:
    """The id of the run of `planned`: one that is done, or one that is trained to its end now.

    A run that was broken off goes on. Raises what `run_curriculum` does, AbortedError among it.
    """
    close_orphan_runs(data_folder)
    for run in list_runs(data_folder, tracking_uri=tracking_uri, max_results=MAX_RUNS):
        if run.tags.get(TAG) == planned.key and run.status == "FINISHED":
            say(f"{planned.name}: done before, as run {run.run_id[:8]}")
            return run.run_id
    say(f"{planned.name}: trains")
    request = requested(planned, data_folder, tracking_uri=tracking_uri)
    return run_curriculum(request, SilentObserver(), should_stop=lambda: False).run_id


def requested(
    planned: PlannedTraining, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> RunRequest:
    """The run of `planned` that was broken off, to go on, or a new one."""
    for run in resumable_runs(data_folder, key=planned.key):
        if not run.alive:
            return check_resume(
                run, planned.curriculum, data_folder, tracking_uri=tracking_uri
            ).request
    return RunRequest(
        planned.curriculum,
        data_folder,
        planned.name,
        tracking_uri=tracking_uri,
        key=planned.key,
        tags={TAG: planned.key},
    )

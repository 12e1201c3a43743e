"""`bench self-play`: the same self-play under each way to draw past selves, rated in a league.

Trainings are tracked runs, found again by their tag, so that what was broken off goes on where it
stopped.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, NamedTuple

from aimbot_lab.bench.train import FILE
from aimbot_lab.bench.turns import Report, Say, Table, turns
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.runs.resume import check_resume
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest, close_orphan_runs, resumable_runs
from aimbot_lab.foundation.episodes import student_interval
from aimbot_lab.foundation.garbage import free_training
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.training.run_hooks import SilentObserver

TAG = "lab.bench_self_play"
ENDS = ("rating", "lower", "upper")
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


class PlannedTraining(NamedTuple):
    """One of the trainings."""

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


def planned_trainings(
    steps: int, seeds: int, overrides: Sequence[str] = ()
) -> Iterator[PlannedTraining]:
    """Runs of `steps` steps under each sampling, from seeds 1 to `seeds`.

    Seed by seed, so that what is there early is a comparison; `overrides` are for all of them.
    """
    for turn, sampling in turns(SAMPLINGS, seeds, alternate=False):
        own = (f"seed={turn + 1}", f"train.total_steps={steps}", SAMPLINGS[sampling])
        curriculum = load_curriculum(FILE.with_name("self_play.yaml"), (*overrides, *own))
        yield PlannedTraining(sampling, turn + 1, curriculum)


def trained_run(
    planned: PlannedTraining, data_folder: DataFolder, *, say: Say, tracking_uri: str | None
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
    free_training()
    return run_curriculum(request, SilentObserver(), should_stop=lambda: False).run_id


def requested(
    planned: PlannedTraining, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> RunRequest:
    """The run of `planned` that was broken off, to go on, or a new one."""
    curriculum, key = planned.curriculum, planned.key
    for run in resumable_runs(data_folder, key=key):
        if not run.alive:
            return check_resume(run, curriculum, data_folder, tracking_uri=tracking_uri)[0]
    about: Any = {"tracking_uri": tracking_uri, "key": key, "tags": {TAG: key}}
    return RunRequest(curriculum, data_folder, planned.name, **about)


def samplings_report(
    plan: Mapping[str, Any], runs: Sequence[tuple[PlannedTraining, str]], league: Any
) -> Report:
    """What `league` says of the last agents of the trainings, each with the id of its run."""
    players = {player.run: player for player in league.players}
    found, rows = [], []
    for sampling in SAMPLINGS:
        own = [(one.seed, players[run]) for one, run in runs if one.sampling == sampling]
        mean = student_interval([player.rating for _, player in own])
        seeds = [{"seed": seed, **asdict(player)} for seed, player in own]
        found.append({"sampling": sampling, **mean._asdict(), "seeds": seeds})
        shown = {f"seed {one['seed']}": {key: one[key] for key in ENDS} for one in seeds}
        rows.append({"sampling": sampling, "mean": mean._asdict(), **shown})
    words = f"{plan['steps']:,} steps each; {plan['games']} games a pair. {league.verdict}"
    document = {"plan": plan, "samplings": found, "league": league.as_json()}
    return Report(
        document,
        [Table("Ratings of the last agents, of each seed and their mean [95 %]", rows), words],
    )

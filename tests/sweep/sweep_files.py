"""A small sweep and its curriculum, as files, for tests."""

import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.space import Params
from aimbot_lab.sweep.storage import Storage, choose_storage, open_storage
from aimbot_lab.sweep.trial_queue import Claim, TrialQueue
from aimbot_lab.sweep.trial_runs import TrialTraining
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import Owner, this_process

CURRICULUM = """
name: tiny
env: {num_envs: 16, time_limit: 5.0, goto_win_radius: 12.0}
lessons:
  - name: near
    targets: {goto: 1}
    difficulty: {goto: [1, 1, 0, 0, 0]}
train:
  total_steps: 1024
  n_steps: 32
  batch_size: 256
  n_epochs: 1
  network: {layers: [8]}
"""
SWEEP = """
name: small
base: tiny.yaml
search:
  env.rewards.spin_penalty: {type: float, low: 0.1, high: 10, log: true}
  env.rewards.in_area: {type: float, low: 0.5, high: 50, log: true}
objective: {measure: win_rate, episodes: 10}
trials: 3
seeds: 2
lease: 600
startup_trials: 2
confirm: {best: 1, seeds: 2, episodes: 10}
tracking: {experiment: tests}
"""
PLANTED = """
name: planted
base: tiny.yaml
search:
  env.rewards.spin_penalty: {type: float, low: 0.03, high: 30, log: true}
  env.rewards.facing: {type: float, low: 0.03, high: 30, log: true}
  env.rewards.in_area: {type: float, low: 0.15, high: 150, log: true}
objective:
  measure: planted
  optimum: {env.rewards.spin_penalty: 0.2, env.rewards.facing: 8, env.rewards.in_area: 60}
  episodes: 500
trials: 8
seeds: 2
startup_trials: 4
parallel: 3
workers: 3
confirm: {best: 0}
lease: 600
tracking: {experiment: tests}
"""


# What curricula/short.yaml took on 16 seeds of `aimbot-lab sweep rewards`, with an older version.
MEASURED_STEPS = (
    847104, 999424, 997120, 912896, 1028864, 1040640, 733952, 954368,
    1113600, 989952, 988672, 1062912, 1044224, 1091584, 975616, 1006080,
)  # fmt: skip
GOAL = CURRICULUM.replace(
    "train:", "    completion_criteria: {threshold: 0.01, min_lesson_length: 5}\ntrain:"
).replace("goto_win_radius: 12.0", "goto_win_radius: 16.0")
RACE = (
    SWEEP.replace("base: tiny.yaml", "base: goal.yaml")
    .replace("{measure: win_rate, episodes: 10}", "{measure: steps_to_goal}")
    .replace("lease: 600", "lease: 600\noverrides: {train.total_steps: 4096}")
    .replace("trials: 3", "trials: 3\nparallel: 1\nworkers: 1\npruner: {kind: race, margin: 0.5}")
)


def write_sweep(folder: Path, text: str = SWEEP) -> Path:
    """The path of a sweep file in `folder`, beside its curriculum."""
    (folder / "tiny.yaml").write_text(CURRICULUM, encoding="utf-8")
    (folder / "goal.yaml").write_text(GOAL, encoding="utf-8")
    path = folder / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@cache
def loaded(text: str) -> LoadedSweep:
    """The sweep of `text`, which is read once."""
    with TemporaryDirectory() as folder:
        return load_sweep(write_sweep(Path(folder), text))


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """`text` with the first of each pair replaced by the second; each must be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def params(**values: Any) -> dict[str, Any]:
    """Values by short names of rewards."""
    return {f"env.rewards.{name}": value for name, value in values.items()}


VALUES = params(spin_penalty=0.3, in_area=7.0)


class Watch:
    """Follows a training, and ends it once it has taken `stop_at` steps."""

    def __init__(self, stop_at: int | None = None) -> None:
        self._step, self._stop_at = 0, stop_at

    def should_stop(self) -> bool:
        return self._stop_at is not None and self._step >= self._stop_at

    def at(self, step: int, steps: int, value: float | None) -> None:
        self._step = step


class Watcher:
    """Never stops a worker."""

    def should_stop(self) -> bool:
        return False

    def progress(self, *_: Any) -> None:
        pass


def task_of(
    sweep: LoadedSweep, folder: Path, key: str | None = None, values: Params = VALUES
) -> TrialTraining:
    """A training whose data folder is `folder`; with a key, it can be resumed."""
    return TrialTraining(
        sweep=sweep.config,
        base=sweep.base,
        params=values,
        seed=5,
        evaluation_seed=6,
        episodes=10,
        name="one",
        tags={"lab.sweep": "small"},
        data_folder=DataFolder(folder),
        key=key,
    )


def storage_in(folder: Path, name: str) -> Storage:
    """The storage of the sweep `name` in the data folder below `folder`."""
    return open_storage(choose_storage(DataFolder(folder / "data"), name, None))


def begun_in(folder: Path, text: str) -> SweepRecord:
    """The sweep of `text`, which begins there."""
    sweep = loaded(text)
    return begin(storage_in(folder, sweep.config.name), sweep, resume=False)


def taken(queue: TrialQueue | None, owner: Owner | None = None) -> Claim:
    """The next trial, taken by that worker or by one of its own."""
    assert queue is not None
    claim = queue.take(owner or this_process(uuid.uuid4().hex, None))
    assert claim is not None
    return claim

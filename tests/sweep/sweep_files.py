"""A small sweep and its curriculum, as files, for tests."""

import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.trial_queue import Claim, TrialQueue
from aimbot_lab.tracking.run_folder import this_process

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


class Watcher:
    """Never stops a worker."""

    def should_stop(self) -> bool:
        return False

    def progress(self, *_: Any) -> None:
        pass


def taken(queue: TrialQueue) -> Claim:
    """The next trial, taken by a worker of its own."""
    claim = queue.take(this_process(uuid.uuid4().hex, None))
    assert claim is not None
    return claim

"""Kills trainings at random moments, resumes them, and compares them with unbroken ones.

    python killed_runs.py FOLDER RUNS KILLS SEED [ALGORITHM]

writes one JSON line per run. Each attempt is a fork of this process, which has everything
imported, so that a kill costs little; nothing here may start a thread before a fork.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
from gymnasium import spaces

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.runs.resume import check_resume, newest_resumable
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest, close_orphan_runs
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking.data_folder import DataFolder, embedded_address
from aimbot_lab.tracking.mlflow_store import connect
from aimbot_lab.training.callbacks.assembly import FOLDER as REPLAYS
from aimbot_lab.training.networks import settings as network_settings
from aimbot_lab.training.run_hooks import SilentObserver
from tests.training.small_environments import Goals, Shown

CURRICULUM = """
name: small
seed: {seed}
env: {{num_envs: 32, goto_win_radius: 12.0, time_limit: 5.0{env}}}
lessons:
  - name: first
    targets: {{goto: 1}}
    difficulty: {{goto: [1, 0, 0, 0, 0]}}
    completion_criteria: {{threshold: 0.02, min_lesson_length: 10}}
  - name: second
    targets: {{goto: 1}}
    completion_criteria: {{threshold: {threshold}, min_lesson_length: 10}}
train:
  algo: {algo}
  total_steps: 32_768
  n_steps: 32
  batch_size: 512
{epochs}  network: {{layers: [16], scaling: running{parts}}}
  reward_scale: running
"""
SELF_PLAY = "self_play"
DUEL = """
name: small duel
seed: {seed}
env: {{world: duel, num_envs: 16, time_limit: 2.0, health: 1}}
self_play: {{save_steps: 1_000, swap_steps: 500, window: 4, at_once: 2, sampling: {{pfsp: {{}}}}}}
lessons:
  - name: first
    targets: {{greedy: 1}}
    completion_criteria: {{measure: progress, threshold: 0.2, min_lesson_length: 0}}
  - name: second
    targets: {{self: 2, reference: 1, aimbot: 1}}
    completion_criteria: {{rule: ml-agents, measure: elo, threshold: {threshold},
                           min_lesson_length: 40}}
train: {{algo: hybrid_ppo, masks: true, total_steps: 6_144, n_steps: 16, batch_size: 384,
        n_epochs: 1, network: {{layers: [16]}}}}
"""
PICTURE, NUMBERS = spaces.Box(0, 255, (36, 36, 3), np.uint8), spaces.Box(-2.0, 2.0, (2,))
CHOICES = spaces.Discrete(3)
SMALL_ENVIRONMENTS = {
    "Goals-v0": partial(Goals, NUMBERS),
    "GoalsOfChoices-v0": partial(Goals, CHOICES),
    "Pictures-v0": partial(Shown, PICTURE, CHOICES, alone=False),
}
for name, made in SMALL_ENVIRONMENTS.items():
    gymnasium.register(name, made, max_episode_steps=20, disable_env_checker=True)
ROLLOUTS = "n_steps: 250, batch_size: 50, n_epochs: 4, "
HINDSIGHT = "options: {replay_buffer: her, train_freq: 4}, "
# Algorithms of the libraries, each with an environment and further settings.
LIBRARY = {
    **dict.fromkeys(("ppo of numbers", "recurrent_ppo of numbers"), ("Pendulum-v1", ROLLOUTS)),
    "trpo of numbers": ("Pendulum-v1", ROLLOUTS.replace("n_epochs: 4, ", "")),
    **dict.fromkeys(("a2c", "sac", "td3", "ddpg", "tqc", "crossq"), ("Pendulum-v1", "")),
    **dict.fromkeys(("dqn of choices", "qrdqn", "ars"), ("CartPole-v1", "")),
    "sac with goals": ("Goals-v0", HINDSIGHT),
    "dqn with goals": ("GoalsOfChoices-v0", HINDSIGHT),
    "ppo with pictures": ("Pictures-v0", ROLLOUTS),
    "dqn with pictures": ("Pictures-v0", "options: {train_freq: 25}, "),
}
ENVIRONMENT = """
name: small library
seed: {seed}
env: {{world: gymnasium, id: {id}, num_envs: 1}}
train: {{algo: {algo}, total_steps: 2_000, {more}network: {{layers: [32, 32]}}}}
"""
ALL_PARTS = "all_parts"  # hybrid_ppo with every part of a network and every switch
SWITCHES = (
    "  aim: hybrid\n  masks: true\n  objective: per_branch\n  dual_clip: 3\n  target: attention\n"
    "  engine: fused\n"
)
PARTS = ", scalars: [16], units: {layers: [8]}, memory: {size: 8}"
assert all(f"{part}: " in PARTS for part in network_settings.PARTS if part != "picture")
SEEN = ", observation: {units: true}, bystanders: 6"


def curriculum(folder: Path, seed: int, algo: str) -> LoadedCurriculum:
    """One that passes its last lesson with an even seed, and spends its steps with an odd one."""
    file = folder / f"{algo}-{seed}.yaml"
    if algo == SELF_PLAY:
        file.write_text(DUEL.format(seed=seed, threshold=9999 if seed % 2 else 0), "utf-8")
        return load_curriculum(file)
    if algo in LIBRARY:
        name, more = LIBRARY[algo]
        given = {"id": name, "algo": algo.partition(" ")[0], "more": more}
        file.write_text(ENVIRONMENT.format(seed=seed, **given), "utf-8")
        return load_curriculum(file)
    threshold = 0.95 if seed % 2 else 0.04
    every = algo == ALL_PARTS
    epochs = "" if algo == "trpo" else "  n_epochs: 2\n"  # trpo has none
    parts = {"env": SEEN, "parts": PARTS} if every else {"env": "", "parts": ""}
    parts |= {"epochs": epochs + SWITCHES if every else epochs}
    algo = "hybrid_ppo" if every else algo
    file.write_text(CURRICULUM.format(seed=seed, threshold=threshold, algo=algo, **parts), "utf-8")
    return load_curriculum(file)


def attempt(loaded: LoadedCurriculum, data: DataFolder) -> dict[str, Any]:
    """Take up the run if there is one, else begin it; and train it to its end."""
    unfinished = newest_resumable(loaded, data)
    if unfinished is None:
        request = RunRequest(loaded, data)
    elif unfinished.record.spent_steps is not None:  # it only had to deliver its end, as FAILED
        close_orphan_runs(data)
        (kept,) = data.artifacts.rglob(f"{unfinished.run_id}/**/result.json")
        ended: dict[str, Any] = json.loads(kept.read_text())
        return {**ended, "run_id": unfinished.run_id}
    else:
        request = check_resume(unfinished, loaded, data)[0]
    return run_curriculum(request, SilentObserver(), should_stop=lambda: False).as_json()


def forked(
    loaded: LoadedCurriculum, data: DataFolder, *, kill_after: float = inf
) -> tuple[float, bool]:
    """Seconds of an attempt in a process of its own, and whether it came to its end."""
    answer = data.root.parent / "answer.json"
    answer.unlink(missing_ok=True)

    def work() -> None:
        fresh = answer.with_suffix(".new")
        fresh.write_text(json.dumps(attempt(loaded, data)))
        fresh.rename(answer)

    seconds = in_fork(work, kill_after=kill_after)
    return seconds, answer.exists()


def in_fork(work: Callable[[], None], *, kill_after: float = inf) -> float:
    """The seconds of the processor that a fork took for `work`; it is killed after so many."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 it must not reach the code of the parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    process = psutil.Process(child)
    done, seconds = 0, 0.0
    while not done:
        time.sleep(0.002)
        spent = process.cpu_times()
        seconds = spent.user + spent.system
        if seconds >= kill_after:
            os.kill(child, signal.SIGKILL)
        done, status = os.waitpid(child, os.WNOHANG)
    if status not in (0, signal.SIGKILL):
        raise SystemExit(f"an attempt failed with status {status}")
    return seconds


def tracked(data: DataFolder, run_id: str) -> dict[str, Any]:
    """What the store holds of a run, times and speeds left out.

    Replays too: of an episode that was running when the process died the beginning is lost. And
    what MLflow leaves of a copy that it was making: a hidden file beside the artifact.
    """
    with sqlite3.connect(data.database) as database:
        rows = database.execute(
            "select key, step, value, is_nan from metrics where run_uuid = ?", (run_id,)
        ).fetchall()
        ((status,),) = database.execute("select status from runs where run_uuid = ?", (run_id,))
        hashes = database.execute(
            "select value from tags where run_uuid = ? and key = 'lab.state_sha256'", (run_id,)
        ).fetchall()
    database.close()
    points = [(key, step) for key, step, *_ in rows]
    folder = next(data.artifacts.rglob(run_id))
    return {
        "status": status,
        "twice": len(points) - len(set(points)),
        "values": sorted(row for row in rows if row[0] != names.STEPS_PER_SECOND),
        "points": len(points),
        "state_sha256": hashes,
        "files": {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.parent.name != REPLAYS
        },
    }


def fresh_folder(folder: Path, name: str) -> DataFolder:
    """A data folder with a store: to make one takes longer than a training."""
    template = folder / "template.db"
    if not template.exists():
        in_fork(lambda: make_store(DataFolder(folder / "template"), template))
    data = DataFolder(folder / name / "data")
    data.root.mkdir(parents=True)
    shutil.copy(template, data.database)
    return data


def make_store(data: DataFolder, template: Path) -> None:
    connect(data, embedded_address(data))
    shutil.copy(data.database, template)


def moments(kills: int, chance: random.Random) -> Iterator[float]:
    """After what share of a whole training to kill each attempt; the last one is not killed.

    All kills but the last come before the run can have ended, the last at any time.
    """
    for _ in range(kills - 1):
        yield chance.uniform(0.0, 1.0 / kills)
    yield from (chance.uniform(0.0, 1.0), inf)


def compare(folder: Path, seed: int, *, kills: int, algo: str, chance: random.Random) -> None:
    """Write how a run that is killed again and again compares with an unbroken one."""
    loaded = curriculum(folder, seed, algo)
    whole = fresh_folder(folder, f"{algo}-{seed}-whole")
    seconds, _ = forked(loaded, whole)
    expected = json.loads((whole.root.parent / "answer.json").read_text())
    broken = fresh_folder(folder, f"{algo}-{seed}-broken")
    killed = 0
    for moment in moments(kills, chance):
        _, ended = forked(loaded, broken, kill_after=moment * seconds)
        if ended:
            break
        killed += 1
    got = json.loads((broken.root.parent / "answer.json").read_text())
    ours, theirs = tracked(broken, got["run_id"]), tracked(whole, expected["run_id"])
    line = {
        **{"seed": seed, "algo": algo, "kills": killed, "twice": ours["twice"]},
        **{name: got[name] for name in ("status", "steps", "state_sha256")},
        "resumes": len(os.listdir(broken.artifacts)),
        "same_state": got["state_sha256"] == expected["state_sha256"],
        "same_steps": (got["steps"], got["status"]) == (expected["steps"], expected["status"]),
        "same_metrics": ours["values"] == theirs["values"],
        "same_points": ours["points"] == theirs["points"],
        "same_files": ours["files"] == theirs["files"],
        "status_in_store": ours["status"],
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, runs, kills, seed = Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:5])
    algo = sys.argv[5] if len(sys.argv) > 5 else "ppo"
    chance = random.Random(seed)
    # Else the first run would take far longer than those after it, which find compiled kernels.
    forked(curriculum(folder, seed, algo), fresh_folder(folder, f"{algo}-first"))
    for number in range(runs):
        compare(folder, seed + number, kills=kills, algo=algo, chance=chance)


if __name__ == "__main__":
    main()

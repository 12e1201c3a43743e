"""Trains the same in many numbers of processes and threads, over gloo.

    python scale_program.py VARIANT PROCESSES THREADS [PROCESSES THREADS ...]

writes one JSON line for each pair. Each process is a fork of this one, which has everything
imported and compiled, so that it costs little; nothing may start a thread before a fork, so
OMP_NUM_THREADS must be 1.
"""

import json
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tiny_training import Sink, learn

from aimbot_lab.curriculum.progress import EPISODES_NAME
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.training.algorithms.registry import shard_count
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.processes.exchange import rank_from_environment
from aimbot_lab.training.processes.gloo import connect
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import type_of

CURRICULA = Path(__file__).parents[2] / "curricula"
SMALL = (
    "env.num_envs=128",
    "env.time_limit=3.0",
    "train.n_epochs=2",
    "train.total_steps=65536",  # eight rollouts
)
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "goto": (
        "env.goto_win_radius=12.0",
        "lessons.0.completion_criteria={threshold: 0.01, min_lesson_length: 10}",
    ),
    "attack": (
        "train.aim=hybrid",
        "train.masks=true",
        "train.objective=per_branch",
        "lessons.0.completion_criteria={measure: progress, threshold: 0.3, min_lesson_length: 0}",
        "train.network={layers: [64, 64], activation: relu, scaling: running}",
    ),
}


class Record(Sink):
    """Keeps what a run would, as hashes."""

    def __init__(self) -> None:
        super().__init__()
        self.checkpoints: list[tuple[int, str]] = []

    def keep(self, checkpoint: Checkpoint) -> None:
        state = unpack(checkpoint.state)
        for name in ("seconds", "seconds_since_report"):
            state["report"][name] = 0.0  # the clock's
        self.checkpoints.append((checkpoint.step, sha256(pack(state)).hexdigest()))


def made(variant: str, threads: int) -> TrainingPlan:
    sets = (*SMALL, *VARIANTS[variant], f"env.threads={threads}", f"train.torch_threads={threads}")
    config = load_curriculum(CURRICULA / f"{variant}.yaml", sets).config
    return TrainingPlan(config.seed, config.env, config.lessons, config.train)


def learned(plan: TrainingPlan) -> dict[str, Any]:
    """What the process at its place in the environment comes to."""
    lesson_callback.MAX_SHARE = 1.0  # a checkpoint at every rollout
    exchange = connect(rank_from_environment())
    try:
        record = Record()
        leads = exchange.place.leads
        links = RunLinks(record=record, checkpoints=record) if leads else RunLinks()
        training = Training(plan, exchange=exchange)
        ended = learn(training, record, links=links)
    finally:
        exchange.close()
    return {
        "state_sha256": ended.state_sha256,
        "steps": ended.steps,
        "lesson": training.progress.lesson + 1,
        "shards": shard_count(plan.train, type_of(plan.env).rows(plan.env)),
        "checkpoints": record.checkpoints,
        "files": {name: sha256(text.encode()).hexdigest() for name, text in record.files.items()},
        "episodes": record.files.get(EPISODES_NAME, "").count("\n") - 1,
    }


def forked(work: Callable[[], Any], answer: Path) -> int:
    """The process id of a fork, which writes what `work` gives."""
    child = os.fork()
    if child == 0:
        try:
            answer.write_text(json.dumps(work()))
        except BaseException:  # noqa: BLE001 it must not reach the code of the parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def together(plan: TrainingPlan, processes: int) -> list[dict[str, Any]]:
    """What each of so many processes comes to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(processes))
    with tempfile.TemporaryDirectory() as name:
        answers = [Path(name) / str(rank) for rank in range(processes)]
        children = []
        for rank, answer in enumerate(answers):
            os.environ["RANK"] = str(rank)
            children.append(forked(lambda: learned(plan), answer))
        for child in children:
            _, status = os.waitpid(child, 0)
            if status:
                raise SystemExit(f"a process failed with status {status}")
        return [json.loads(answer.read_text()) for answer in answers]


if __name__ == "__main__":
    Training(made(sys.argv[1], 1))  # compiles what every fork needs
    tasks = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1
    assert tasks == 1, f"{tasks} threads: a fork would lose them"
    numbers = [*map(int, sys.argv[2:])]
    for count, threads in zip(numbers[::2], numbers[1::2], strict=True):
        found = together(made(sys.argv[1], threads), count)
        line = {"processes": count, "threads": threads, "ranks": found}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

"""All snapshots of a learner, in the order in which they were taken, and their files."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch as th
from safetensors import SafetensorError
from safetensors.torch import save_file

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import MAX_WEIGHTS_BYTES, policy_of
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.self_play.scores import GAMES_NAME, GamesTable
from aimbot_lab.training.settings import TrainSettings

Weights = Mapping[str, th.Tensor]
POOL_FOLDER = "pool"  # among a run's artifacts
STEPS_NAME = "snapshots.csv"
STEPS_HEAD = "snapshot,step\n"
SUFFIX = ".safetensors"


class Snapshot(NamedTuple):
    """The learner as it was at a step; its weights are never written to."""

    number: int  # in its pool, from 0
    step: int  # environment steps
    weights: Weights

    @property
    def name(self) -> str:
        """What it is called as a player, and as a part of checkpoints."""
        return snapshot_name(self.number)


def snapshot_name(number: int) -> str:
    """What the snapshot of that number is called."""
    return f"snapshot-{number:06d}"


class SnapshotPool:
    """Snapshots by their numbers; a checkpoint keeps each as a part, which is written once."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self.snapshots)

    def weights(self, number: int) -> Weights:
        """Those of the snapshot of that number."""
        return self.snapshots[number].weights

    def take(self, weights: Weights, *, step: int) -> Snapshot:
        """The snapshot with a copy of `weights`, those at `step`; the last one where it is that."""
        if self.snapshots and self.snapshots[-1].step == step:
            return self.snapshots[-1]
        copied = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        self.snapshots.append(Snapshot(len(self.snapshots), step, copied))
        return self.snapshots[-1]

    def parts(self) -> dict[str, Callable[[], bytes]]:
        """What makes the bytes of each snapshot, by its name."""
        return {one.name: partial(pack, dict(one.weights)) for one in self.snapshots}

    def state(self) -> list[int]:
        """The steps of the snapshots."""
        return [one.step for one in self.snapshots]

    def resume(self, state: Sequence[int], read_part: Callable[[str], bytes]) -> None:
        """Have the snapshots of these steps, whose bytes `read_part` gives."""
        self.snapshots = [
            Snapshot(number, step, unpack(read_part(snapshot_name(number))))
            for number, step in enumerate(state)
        ]

    def cut(self, count: int) -> None:
        """Forget all but the first `count`."""
        del self.snapshots[count:]


def save_pool(pool: SnapshotPool, games: GamesTable, folder: Path) -> list[tuple[str, Path]]:
    """The files in `folder`, each with the artifact folder that it belongs into ("": the top)."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for one in pool.snapshots:
        path = folder / f"{one.name}{SUFFIX}"
        save_file({name: tensor.contiguous() for name, tensor in one.weights.items()}, path)
        found.append((POOL_FOLDER, path))
    steps = folder / STEPS_NAME
    lines = (f"{one.name},{one.step}\n" for one in pool.snapshots)
    steps.write_text(STEPS_HEAD + "".join(lines), encoding="utf-8")
    table = folder / GAMES_NAME
    table.write_text(games.text(), encoding="utf-8")
    return [*found, (POOL_FOLDER, steps), ("", table)]


def read_steps(text: str) -> list[tuple[str, int]]:
    """Names and steps of the snapshots that `STEPS_NAME` lists. Raises ValueError: it lists none.

    Names are as they are given to snapshots, so that none leads elsewhere.
    """
    head, *lines = text.splitlines(keepends=True)
    if head != STEPS_HEAD:
        raise ValueError(f"{STEPS_NAME} does not begin with {STEPS_HEAD.strip()}")
    found = []
    for number, line in enumerate(lines):
        name, step = line.rstrip("\n").split(",")
        if name != snapshot_name(number):
            raise ValueError(f"{STEPS_NAME} names {name!r} in the place of {snapshot_name(number)}")
        found.append((name, int(step)))
    return found


def read_snapshot(path: Path, train: TrainSettings, spec: WorldSpec) -> Agent:
    """The agent of the snapshot in `path`, which was trained so; reading it runs no code.

    Raises LabError, which says why, where the file is missing or holds no such agent.
    """
    try:
        policy = policy_of(read_bounded(path, MAX_WEIGHTS_BYTES), train, spec)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    return Agent(policy, spec, train)


def read_part(path: Path, train: TrainSettings, spec: WorldSpec) -> Agent:
    """The agent of the snapshot that is the part `path` of a checkpoint; raises as above."""
    try:
        weights = unpack(read_bounded(path, MAX_WEIGHTS_BYTES))
        policy = new_policy(train, spec)
        policy.load_state_dict(dict(weights))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise _unreadable(path, error) from error
    policy.set_training_mode(False)
    return Agent(policy, spec, train)


def _unreadable(path: Path, error: Exception) -> LabError:
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return LabError(f"{path.stem}: {reason}")

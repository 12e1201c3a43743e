"""A pool and its games as files; reading them runs no code."""

from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import MAX_WEIGHTS_BYTES
from aimbot_lab.training.agents.weights_file import policy_of
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.checkpoint.packing import unpack
from aimbot_lab.training.self_play.games import GAMES_NAME, GamesTable
from aimbot_lab.training.self_play.pool import SnapshotPool, snapshot_name
from aimbot_lab.training.settings import TrainSettings

POOL_FOLDER = "pool"  # among a run's artifacts
STEPS_NAME = "snapshots.csv"
HEAD = "snapshot,step\n"
SUFFIX = ".safetensors"


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
    steps.write_text(HEAD + "".join(lines), encoding="utf-8")
    table = folder / GAMES_NAME
    table.write_text(games.text(), encoding="utf-8")
    return [*found, (POOL_FOLDER, steps), ("", table)]


def read_steps(text: str) -> list[tuple[str, int]]:
    """Names and steps of the snapshots that `STEPS_NAME` lists. Raises ValueError: it lists none.

    Names are as they are given to snapshots, so that none leads elsewhere.
    """
    head, *lines = text.splitlines(keepends=True)
    if head != HEAD:
        raise ValueError(f"{STEPS_NAME} does not begin with {HEAD.strip()}")
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

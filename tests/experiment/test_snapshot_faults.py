"""Snapshots of self-play on a disk that fails and under a process that is killed."""

from pathlib import Path
from typing import Any

import pytest
import torch as th
from failing_system import FailingSystem, Killed, full_disk, kill

from aimbot_lab.experiment.runs.checkpoints import CheckpointFolder
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.run_hooks import Checkpoint
from aimbot_lab.training.self_play.pool import SnapshotPool


def weights(number: int) -> dict[str, th.Tensor]:
    return {"layer": th.full((4, 3), float(number)), "bias": th.arange(3.0) - number}


class Run:
    """What a training does to its pool and its checkpoints: a snapshot for each checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.checkpoints, self.pool = CheckpointFolder(folder), SnapshotPool()
        kept = self.checkpoints.newest()
        if kept is not None:
            self.pool.resume(unpack(kept.state)["pool"], kept.read_part)

    def take(self) -> None:
        self.pool.take(weights(len(self.pool)), step=100 * len(self.pool))

    def keep(self) -> None:
        state = pack({"pool": self.pool.state()})
        self.checkpoints.keep(Checkpoint(100 * len(self.pool), state, self.pool.parts()))


def begun(folder: Path, snapshots: int) -> Run:
    folder.mkdir()
    run = Run(folder)
    for _ in range(snapshots):
        run.take()
        run.keep()
    return run


def kept_whole(folder: Path) -> int:
    """How many snapshots the newest checkpoint names; each must be there, with its weights."""
    pool = Run(folder).pool
    assert pool.state() == [100 * number for number in range(len(pool))]
    for number, snapshot in enumerate(pool.snapshots):
        assert snapshot.weights.keys() == weights(number).keys()
        for name, tensor in weights(number).items():
            assert th.equal(snapshot.weights[name], tensor)
    return len(pool)


@pytest.mark.parametrize("fail", [full_disk, kill])
def test_a_fault_at_any_write_of_a_snapshot_loses_none_that_a_checkpoint_names(
    tmp_path: Path, fail: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run = begun(tmp_path / "counted", 3)
        run.take()
        system = FailingSystem(patch, -1, full_disk)
        run.keep()
    assert system.made[:5] == ["open", "write", "fsync", "close", "replace"]  # the snapshot
    seen = set()
    for fatal in range(1, len(system.made) + 1):
        folder = tmp_path / f"{fatal}"
        run = begun(folder, 3)
        run.take()
        with pytest.MonkeyPatch.context() as patch:
            FailingSystem(patch, fatal, fail)
            try:
                run.keep()
            except Killed:
                assert fail is kill
        found = kept_whole(folder)
        seen.add(found)
        if fail is kill:  # the next process has what the checkpoint names
            run = Run(folder)
        run.take()
        run.keep()
        assert kept_whole(folder) == len(run.pool) > found
    assert seen == {3, 4}

"""All snapshots of a learner, in the order in which they were taken."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch as th

from aimbot_lab.training.checkpoint.packing import pack, unpack

Weights = Mapping[str, th.Tensor]


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

"""A training frozen where a rollout begins, and who keeps such checkpoints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

MAX_SHARE = 0.05  # of a training's time that its checkpoints may take


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a training's future depends on.

    `parts` are further bytes that `state` relies on, each under a name that no other content
    ever gets in the same training, so that a part which is kept already need not be made again.
    """

    step: int  # environment steps
    state: bytes
    parts: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)


class CheckpointSink(Protocol):
    """Who keeps checkpoints."""

    def keep(self, checkpoint: Checkpoint) -> None:
        """Keep `checkpoint`, or go on with those before it; never raises for a disk's troubles."""
        ...


def no_part(name: str) -> bytes:
    """Reads the parts of a checkpoint that has none."""
    raise KeyError(name)

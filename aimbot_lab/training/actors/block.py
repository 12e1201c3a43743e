"""What a learner and its actors send each other: orders, and blocks of played steps."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.checkpoint.packing import unpack
from aimbot_lab.training.settings import TrainSettings

Array = npt.NDArray[Any]
Scenarios = tuple[tuple[int, Scenario], ...]
"""Some in the order in which they were set, each with the learner's number."""
COLUMNS = (
    "observations",
    "actions",
    "rewards",
    "episode_starts",
    "values",
    "log_probs",
    "advantages",
    "returns",
)
"""Arrays [T, N, ...] of stable-baselines3's rollout buffer."""


class ActorPlan(NamedTuple):
    """What an actor is made from."""

    env: WorldSettings
    train: TrainSettings
    seed: int
    number: int  # of this actor
    actors: int  # how many there are
    rows: int  # of each
    placed: bool  # whether its world is some rows of one that all have together
    code: str  # hash of the learner's
    life: int = 0  # how often it was lost and begun again

    @property
    def first_row(self) -> int:
        """Number of its first row among all rows."""
        return self.number * self.rows


class BlockRequest(NamedTuple):
    """A block to be played."""

    version: int  # updates that the weights have seen
    weights: bytes | None  # packed; None: those of the last order
    step: int  # from which random numbers of the actions follow: no two blocks of an actor share it
    scenarios: Scenarios  # that came since the last order
    first: int | None  # scenario from which on episodes count


class StepEnds(NamedTuple):
    """What stands behind the steps of a block, to value it anew; arrays by row."""

    rewards: Array  # [T, N] as the world gave them, scaled
    ends: Array  # [T, N] whether an episode ended in the step
    last_observations: Any  # [N, D] after the last step, or by name
    cut_steps: Array  # [K] steps in which an episode was cut off
    cut_rows: Array  # [K] their rows
    cut_observations: Any  # [K, D] the last observations of these episodes, or by name


class Block(NamedTuple):
    """T steps of an actor's N rows, by one version of the weights."""

    actor: int
    version: int
    columns: Mapping[str, Array]  # those of COLUMNS
    shown: Array | None  # [T, N, F] what the networks were shown, where the engine keeps it
    ends: Mapping[str, Any] | None  # `StepEnds`, where advantages are corrected
    episodes: Mapping[str, Any]  # columns of the episodes that ended, by step
    running: int | None  # rank of the oldest episode that ran and counts when it began
    unsettled: int  # episodes that would be lost with the actor now
    notices: tuple[str, ...]  # what a person should know of its world
    lost_episodes: int  # of its world so far, with programs that play them
    unread: tuple[tuple[int, str], ...]  # steps in which a game's report was unread, and why
    logged_errors: int = 0  # by programs that play its world, so far
    save_commands: int = 0  # of these programs, to save the agent, so far


def unpacked_block(data: bytes) -> Block:
    """The block that an actor packed."""
    return Block(**unpack(data))

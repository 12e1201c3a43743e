"""Which rows of a training a process has, and what can't be shared out."""

from typing import Any, NamedTuple

from stable_baselines3.common.base_class import BaseAlgorithm

from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.rollout_algorithms import shard_count
from aimbot_lab.training.plan import TrainingPlan
from aimbot_lab.training.processes.exchange import Exchange
from aimbot_lab.training.processes.place import Place
from aimbot_lab.training.processes.sharing import check_sharing
from aimbot_lab.training.processes.tree import share
from aimbot_lab.training.shards import Shards
from aimbot_lab.worlds.registry import make_world, type_of


class OwnRows(NamedTuple):
    """The shards of one of several processes."""

    shards: Shards

    @property
    def first(self) -> int:
        """Number of the first row among all rows."""
        return self.shards.first_row

    @property
    def here(self) -> int:
        """How many there are."""
        return self.shards.here * self.shards.rows

    @property
    def total(self) -> int:
        """How many all processes have."""
        return self.shards.total * self.shards.rows


def own_rows(plan: TrainingPlan, place: Place) -> OwnRows | None:
    """Those of the process at `place`; None where it has all.

    Raises ConfigurationError where `plan` can't be shared by so many.
    """
    if place.count == 1:
        return None
    check_sharing(plan, place.count)
    rows = type_of(plan.env).rows(plan.env)
    total = shard_count(plan.train, rows)
    mine = share(place.rank, place.count, total)
    return OwnRows(Shards(total, mine.start, len(mine), rows // total))


def placed_world(plan: TrainingPlan, rows: OwnRows) -> BatchWorld:
    """The world of these rows alone, not yet reset."""
    world: Any = make_world(plan.env, rows.here)
    world.place(rows.first, rows.total)
    return world  # type: ignore[no-any-return]


def join(model: BaseAlgorithm, exchange: Exchange) -> None:
    """Have `model`, made for its own shards, learn with the other processes."""
    assert isinstance(model, HybridPPO)
    model.exchange = exchange

"""Whether a training can be shared out among several processes, and who has which part of it."""

from typing import Protocol

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.rollout_algorithms import HYBRID_PPO, shard_count, surely_fused
from aimbot_lab.training.processes.place import Place
from aimbot_lab.training.processes.tree import share
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.shards import Shards
from aimbot_lab.worlds.registry import spec_of, type_of


class Shareable(Protocol):
    """What a training is made from, as far as it matters here."""

    @property
    def env(self) -> WorldSettings:
        """The world."""

    @property
    def train(self) -> TrainSettings:
        """The learner."""

    @property
    def self_play(self) -> SelfPlaySettings | None:
        """Whether and how it meets itself."""


def shards_in(plan: Shareable) -> int:
    """How many shards there are to share out."""
    return shard_count(plan.train, type_of(plan.env).rows(plan.env))


def check_sharing(plan: Shareable, processes: int, *, asked: str | None = None) -> None:
    """Raise ConfigurationError where so many processes can't share the training of `plan`.

    `asked` is by which options that was asked for.
    """
    if processes == 1:
        return
    asked = asked or f"--processes {processes}"
    out = f"leave {' and '.join(asked.split()[::2])} out"
    train, spec = plan.train, spec_of(plan.env)
    if train.algo != HYBRID_PPO.name or not surely_fused(train):
        raise ConfigurationError(
            f"{asked}: only hybrid_ppo with its fused engine, on the CPU and "
            f"without train.options, learns in several processes; {out}"
        )
    if train.actors is not None:
        raise ConfigurationError(
            f"{asked}: train.actors feed one learner; leave one of the two out"
        )
    if not spec.can("parts") or spec.agents > 1 or plan.self_play is not None:
        what = "self_play" if plan.self_play is not None else f"the world {plan.env.world}"
        raise ConfigurationError(f"{asked}: {what} can't be shared out; {out}")
    if train.reward_scale == "running":
        raise ConfigurationError(
            f"{asked}: train.reward_scale: running is learned in one process; give "
            f"a number, or {out}"
        )
    total = shards_in(plan)
    if processes > total:
        raise ConfigurationError(
            f"{asked}: there are only {total} shards to share out "
            "(train.shards; with auto they follow from env.num_envs and train.batch_size)"
        )


def own_shards(plan: Shareable, place: Place) -> Shards | None:
    """The shards of the process at `place`; None where it has all.

    Raises ConfigurationError where `plan` can't be shared by so many.
    """
    if place.count == 1:
        return None
    check_sharing(plan, place.count)
    total = shards_in(plan)
    mine = share(place.rank, place.count, total)
    return Shards(total, mine.start, len(mine), type_of(plan.env).rows(plan.env) // total)

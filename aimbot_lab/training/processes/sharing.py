"""Whether a training can be shared out among several processes; nothing heavy is loaded."""

from typing import Protocol

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.rollout_algorithms import HYBRID_PPO, shard_count, surely_fused
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings
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

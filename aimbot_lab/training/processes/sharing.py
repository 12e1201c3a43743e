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


def check_sharing(plan: Shareable, processes: int) -> None:
    """Raise ConfigurationError where so many processes can't share the training of `plan`."""
    if processes == 1:
        return
    train, spec = plan.train, spec_of(plan.env)
    if train.algo != HYBRID_PPO.name or not surely_fused(train):
        raise ConfigurationError(
            f"--processes {processes}: only hybrid_ppo with its fused engine, on the CPU and "
            "without train.options, learns in several processes; leave --processes out"
        )
    if train.actors is not None:
        raise ConfigurationError(
            f"--processes {processes}: train.actors feed one learner; leave one of the two out"
        )
    if not spec.can("parts") or spec.agents > 1 or plan.self_play is not None:
        what = "self_play" if plan.self_play is not None else f"the world {plan.env.world}"
        raise ConfigurationError(
            f"--processes {processes}: {what} can't be shared out; leave --processes out"
        )
    if train.reward_scale == "running":
        raise ConfigurationError(
            f"--processes {processes}: train.reward_scale: running is learned in one process; give "
            "a number, or leave --processes out"
        )
    total = shard_count(train, type_of(plan.env).rows(plan.env))
    if processes > total:
        raise ConfigurationError(
            f"--processes {processes}: there are only {total} shards to share out "
            "(train.shards; with auto they follow from env.num_envs and train.batch_size)"
        )

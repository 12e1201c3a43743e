"""Whether actors can play for a training; nothing heavy is loaded."""

from collections.abc import Iterator
from typing import NamedTuple

from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.actors.settings import ActorSettings
from aimbot_lab.training.algorithms.rollout_algorithms import HYBRID_PPO
from aimbot_lab.training.networks.parts.network_parts import memory_shape
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import spec_of, type_of


class ActorFault(NamedTuple):
    """Why they can't."""

    key: tuple[str, ...]  # below `train`
    what: str


def actor_faults(env: WorldSettings, train: TrainSettings) -> Iterator[ActorFault]:
    """What stands between the actors of `train` and the world of `env`.

    Other algorithms than hybrid_ppo don't take the setting at all.
    """
    actors = train.actors
    if actors is None or train.algo != HYBRID_PPO.name:
        return
    if spec_of(env).agents > 1:
        yield ActorFault(("actors",), f"needs a world with one agent a row (got {env.world})")
    if memory_shape(train) is not None:
        yield ActorFault(("actors",), "needs a network without memory: leave one of the two out")
    if train.samples.keep > 1:
        yield ActorFault(("samples", "keep"), f"must be 1 with actors (got {train.samples.keep})")
    if train.reward_scale == "running":
        yield ActorFault(("reward_scale",), "must be a number with actors (got 'running')")
    yield from _row_faults(actors, type_of(env).rows(env))


def _row_faults(actors: ActorSettings, rows: int) -> Iterator[ActorFault]:
    if actors.rows is not None and actors.number * actors.rows != rows:
        product = f"number * rows = {actors.number * actors.rows}"
        yield ActorFault(("actors",), f"{product} must be env.num_envs, {rows}")
    elif rows % actors.number:
        near = [count for count in range(1, rows + 1) if rows % count == 0]
        nearest = min(near, key=lambda count: abs(count - actors.number))
        what = f"must divide env.num_envs, {rows} (got {actors.number}; nearest that does: "
        yield ActorFault(("actors", "number"), f"{what}{nearest})")

"""A world as the environment that a learner is trained in."""

from aimbot_lab.adapters.reward_scale import reward_scale
from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.world import BatchWorld, seats_of
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.settings import REWARD_SCALE, TrainSettings, bins_within


def new_vec_env(world: BatchWorld, train: TrainSettings, *, seed: int) -> WorldVecEnv:
    """`world` with the actions, masks and rewards that the algorithm of `train` wants."""
    adapter = algorithm_of(train).adapter(train)
    scale = REWARD_SCALE if train.reward_scale is None else train.reward_scale
    return WorldVecEnv(
        world,
        bins_within(train, world.spec.continuous_limit),
        actions=adapter.actions,
        show_masks=adapter.masks_shown,
        seed=seed,
        reward_scale=reward_scale(scale, seats_of(world), gamma=train.gamma),
    )

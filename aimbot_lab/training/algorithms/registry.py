"""Which algorithms exist: those of this package, and those that other packages bring.

A package brings an algorithm by an entry point of the group `aimbot_lab.algorithms`, whose name is
the algorithm's and whose object is a `training.algorithms.algorithm.Algorithm`.
"""

from types import MappingProxyType
from typing import Annotated

from aimbot_lab.foundation.registry import Registry, SettingsByName
from aimbot_lab.training.algorithms.algorithm import Algorithm
from aimbot_lab.training.algorithms.q_learning import Q_LEARNING
from aimbot_lab.training.algorithms.replay_buffer_algorithms import DQN_ALGORITHM, QRDQN_ALGORITHM
from aimbot_lab.training.algorithms.rollout_algorithms import (
    HYBRID_PPO,
    MASKABLE_PPO,
    PPO_ALGORITHM,
    RECURRENT_PPO,
    TRPO_ALGORITHM,
)
from aimbot_lab.training.settings import GROUP, TrainSettings

PPO_FAMILY = PPO_ALGORITHM, MASKABLE_PPO, RECURRENT_PPO, TRPO_ALGORITHM, HYBRID_PPO
BY_VALUES = DQN_ALGORITHM, QRDQN_ALGORITHM, Q_LEARNING
DEFAULT = PPO_ALGORITHM.name
ALGORITHMS: Registry[Algorithm] = Registry(
    group=GROUP,
    noun="algorithm",
    key="algo",
    kind=Algorithm,
    base=TrainSettings,
    own=MappingProxyType({one.name: one for one in (*PPO_FAMILY, *BY_VALUES)}),
)
AnyTrain = Annotated[TrainSettings, SettingsByName(ALGORITHMS, default=DEFAULT, judge=DEFAULT)]
"""The settings of any algorithm, as pydantic validates them; `algo` says which."""


def algorithm_of(settings: TrainSettings) -> Algorithm:
    """The algorithm that `settings` name."""
    return ALGORITHMS[settings.algo]


def any_threads(settings: TrainSettings) -> bool:
    """Whether any number of threads surely learns the same."""
    return algorithm_of(settings).any_threads(settings)

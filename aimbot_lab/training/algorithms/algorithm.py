"""What an algorithm is: its classes, and which settings reach them under which names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.adapters.sb3_actions import LearnerActions
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.schedules import value_at
from aimbot_lab.training.settings import NetworkSettings, TrainSettings

Arguments = dict[str, Any]
NUMBERS = frozenset({"ent_coef"})
"""Arguments that the classes take as numbers only; a schedule gives its first value."""


class Face(NamedTuple):
    """How the world is shown to an algorithm."""

    actions: LearnerActions = "bins"
    masks_shown: bool = False  # in the observation's last columns


@dataclass(frozen=True)
class Algorithm:
    """A stable-baselines3 or sb3-contrib algorithm as a curriculum names it.

    `shared` maps settings to the arguments that take them as they are; a setting that is
    neither there nor in `derived` does nothing here. `policy_options` are options that go to
    the policy's class instead of the model's.
    """

    model: type[BaseAlgorithm]
    policy: type[BasePolicy]
    shared: Mapping[str, str]
    network: Callable[[NetworkSettings, WorldSpec], Arguments]
    face: Callable[[TrainSettings], Face] = lambda _: Face()
    masked: bool = False  # predictions take masks of the choices
    recurrent: bool = False  # the policy remembers
    policy_options: tuple[str, ...] = ()
    derived: frozenset[str] = frozenset()
    """Settings that `more`, `more_policy` or `face` read."""
    more: Callable[[TrainSettings, spaces.Box, int], Arguments] = lambda *_: {}
    """Further arguments from the settings, the observation space and the number of rows."""
    more_policy: Callable[[TrainSettings, WorldSpec], Arguments] = lambda *_: {}
    """Further arguments of the policy's class."""
    fixed: frozenset[str] = frozenset()
    """Arguments that `more` gives and no option may change."""

    def model_arguments(
        self, settings: TrainSettings, observations: spaces.Box, rows: int
    ) -> Arguments:
        """Keyword arguments of the model's class, its policy's and the seed left out."""
        shared = {name: getattr(settings, key) for key, name in self.shared.items()}
        for name in NUMBERS & shared.keys():
            shared[name] = value_at(shared[name], 1.0)
        # None means the class's own default where the class does not take None itself.
        given = {name: value for name, value in shared.items() if value is not None}
        options = {k: v for k, v in settings.options.items() if k not in self.policy_options}
        return {**given, **self.more(settings, observations, rows), **options}

    def policy_arguments(self, settings: TrainSettings, spec: WorldSpec) -> Arguments:
        """Keyword arguments of the policy's class."""
        options = {k: v for k, v in settings.options.items() if k in self.policy_options}
        more = self.more_policy(settings, spec)
        return {**self.network(settings.network, spec), **more, **options}


def same_names(*names: str) -> Mapping[str, str]:
    """Settings whose arguments have the same names."""
    return MappingProxyType({name: name for name in names})

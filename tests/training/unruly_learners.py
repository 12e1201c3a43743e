"""A network and algorithms of a package that misbehave."""

import sys
from typing import Any, Literal

import torch as th
from stable_baselines3 import A2C
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.foundation.settings import STRICT, dataclass
from aimbot_lab.training.algorithms.algorithm import Algorithm, Classes, same_names
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.settings import TrainSettings


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnrulyNetSettings:
    kind: Literal["unruly_net"] = "unruly_net"
    how: str = ""


class Features(th.nn.Module):
    """Two features, until it has been called `left` times."""

    def __init__(self, columns: int, how: str) -> None:
        super().__init__()
        self.layer, self.how, self.left = th.nn.Linear(columns, 2), how, 20

    def forward(self, observations: th.Tensor) -> th.Tensor:
        self.left -= 1
        if self.left < 0 and self.how == "forward":
            raise KeyError("no such ray")
        if self.left < 0 and self.how == "exits":
            sys.exit("licence ran out")
        features = self.layer(observations)
        return features * float("nan") if self.left < 0 and self.how == "nan" else features


class UnrulyNet(NetworkType):
    name, settings = "unruly_net", UnrulyNetSettings

    def features(self, settings: Any, observations: Any, *, spec: Any) -> th.nn.Module:
        return Features(observations.shape[0], settings.how)

    def layers(self, settings: Any) -> tuple[int, ...]:
        return (0 if settings.how == "layers" else 4,)

    def activation(self, settings: Any) -> Any:
        return "step" if settings.how == "activation" else "tanh"

    def resolved(self, settings: Any, spec: Any) -> Any:
        return None if settings.how == "resolved" else settings

    def policy_arguments(self, settings: Any, spec: Any) -> Any:
        return None if settings.how == "arguments" else {}

    def fault(self, settings: Any, spec: Any, *, algo: str) -> Any:
        return 5 if settings.how == "fault" else None

    def weights(self, settings: Any, inputs: int, outputs: int) -> int:
        if settings.how == "weights":
            raise ZeroDivisionError
        return 0


class UnrulyA2C(A2C):
    def train(self) -> None:
        if self.num_timesteps > 100:
            raise OSError("no such optimiser")
        super().train()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnrulySettings(TrainSettings):
    algo: Literal["unruly_a2c"] = "unruly_a2c"


UNRULY_NET = UnrulyNet()
UNRULY_A2C = Algorithm(
    name="unruly_a2c",
    settings=UnrulySettings,
    classes=lambda: Classes(UnrulyA2C, ActorCriticPolicy),
    shared=same_names("n_steps", "learning_rate", "gamma"),
    derived=frozenset({"batch_size"}),
)

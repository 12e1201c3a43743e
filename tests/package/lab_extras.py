"""A package that brings a world, a network and an algorithm; pyproject.toml names them."""

from typing import Annotated, Literal

from aimbot_lab.foundation.settings import STRICT, Bool, Ge, Int, dataclass
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.training.algorithms.algorithm import Algorithm, Classes, same_names
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import WORLDS


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CartsSettings:
    world: Literal["carts"] = "carts"
    num_envs: Annotated[Int, Ge(1)] = 8
    steps: Annotated[Int, Ge(1)] = 50
    """Steps that a pole must stand for a win."""


class Carts(WorldType):
    name, settings = "carts", CartsSettings
    carts = WORLDS["gymnasium"]

    def _inner(self, settings):
        win = {"length_above": settings.steps}
        return self.carts.settings(id="CartPole-v1", win=win, num_envs=settings.num_envs)

    def spec(self, settings):
        return self.carts.spec(self._inner(settings))

    def make(self, settings):
        return self.carts.make(self._inner(settings))

    def targets(self, settings):
        return {"task": 0}

    def baselines(self, settings):
        return self.carts.baselines(self._inner(settings))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SiluSettings:
    kind: Literal["silu"] = "silu"
    units: Annotated[Int, Ge(1)] = 32
    """Of the layer."""


class Silu(NetworkType):
    name, settings = "silu", SiluSettings

    def features(self, settings, observations, *, spec):
        from torch import nn

        from aimbot_lab.training.networks.encoders import ScaledFeatures

        scaled = ScaledFeatures(observations)
        return nn.Sequential(scaled, nn.Linear(scaled.features_dim, settings.units), nn.SiLU())


@dataclass(frozen=True, kw_only=True, config=STRICT)
class A2CSettings(TrainSettings):
    algo: Literal["plain_a2c"] = "plain_a2c"
    use_rms_prop: Bool = True
    """RMSprop in place of Adam."""


def plain_a2c() -> Classes:
    from stable_baselines3 import A2C
    from stable_baselines3.common.policies import ActorCriticPolicy

    return Classes(A2C, ActorCriticPolicy)


CARTS, SILU = Carts(), Silu()
A2C = Algorithm(
    name="plain_a2c",
    settings=A2CSettings,
    classes=plain_a2c,
    shared=same_names("n_steps", "learning_rate", "gamma", "ent_coef", "use_rms_prop"),
)

"""A package that brings a world, a network and an algorithm; pyproject.toml names them."""

from typing import Annotated, Literal

from stable_baselines3 import A2C
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, dataclass
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.training.algorithms.algorithm import Algorithm, Classes, same_names
from aimbot_lab.training.networks.features import ScaledFeatures
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import WORLDS

GYMNASIUM = WORLDS["gymnasium"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CartsSettings:
    """Carts with poles to balance."""

    world: Literal["carts"] = "carts"
    """The world."""
    num_envs: Annotated[Int, Ge(1)] = 8
    """Carts."""
    steps: Annotated[Int, Ge(1)] = 50
    """Steps that a pole must stand for a win."""


class Carts(WorldType):
    name, settings = "carts", CartsSettings

    def _inner(self, settings):
        win = {"length_above": settings.steps}
        return GYMNASIUM.settings(id="CartPole-v1", win=win, num_envs=settings.num_envs)

    def spec(self, settings):
        return GYMNASIUM.spec(self._inner(settings))

    def make(self, settings):
        return GYMNASIUM.make(self._inner(settings))

    def targets(self, settings):
        return {"task": 0}

    def baselines(self, settings):
        return GYMNASIUM.baselines(self._inner(settings))


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SiluSettings:
    """One layer with SiLU."""

    kind: Literal["silu"] = "silu"
    """The network."""
    units: Annotated[Int, Ge(1)] = 32
    """Of the layer."""


class Silu(NetworkType):
    name, settings = "silu", SiluSettings

    def features(self, settings, observations, *, spec):
        inputs = len(spec.observation_names)
        return nn.Sequential(
            ScaledFeatures(observations), nn.Linear(inputs, settings.units), nn.SiLU()
        )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class A2CSettings(TrainSettings):
    """Advantage actor-critic."""

    algo: Literal["a2c"] = "a2c"
    """The algorithm."""
    use_rms_prop: Bool = True
    """RMSprop in place of Adam."""
    rms_prop_eps: Annotated[Float, Gt(0)] = 1e-5
    """RMSprop's epsilon."""


ROLLOUT = ("n_steps", "learning_rate", "gamma", "gae_lambda", "ent_coef", "vf_coef")
CARTS, SILU = Carts(), Silu()
A2C_ALGORITHM = Algorithm(
    name="a2c",
    settings=A2CSettings,
    classes=lambda: Classes(A2C, ActorCriticPolicy),
    shared=same_names(*ROLLOUT, "max_grad_norm", "use_rms_prop", "rms_prop_eps"),
)

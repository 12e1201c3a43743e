"""What a package has to write to bring a world: its settings, and what is known of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from aimbot_lab.foundation.settings import STRICT, Ge, Int, dataclass
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import MakePlayer, RandomAgent, WorldType
from tests.worlds.race import Race, race_spec


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WalkSettings:
    """Walkers on a line."""

    world: Literal["walk"] = "walk"
    """The world."""
    num_envs: Annotated[Int, Ge(1)] = 8
    """Walkers."""
    agents: Annotated[Int, Ge(1)] = 1
    """Walkers who race each other."""


class WalkType(WorldType):
    """Walkers on a line."""

    name = "walk"
    settings = WalkSettings
    gymnasium_ids = MappingProxyType({"stranger/Walk-v0": {"right": 1.0}})

    def spec(self, settings: WalkSettings) -> WorldSpec:
        return race_spec(settings.agents)

    def make(self, settings: WalkSettings) -> BatchWorld:
        return Race(settings.num_envs, settings.agents)

    def targets(self, settings: WalkSettings | None) -> Mapping[str, int]:
        return race_spec(1).difficulties

    def baselines(self, settings: WalkSettings) -> Mapping[str, MakePlayer]:
        return {"random": lambda world, seed: RandomAgent(world.spec, seed)}


WALK = WalkType()

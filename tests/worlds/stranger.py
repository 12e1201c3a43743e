"""What a package has to write to bring a world: its settings, and what is known of it.

Then worlds of a package that are broken, each in another way.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

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


class Breaking(Race):
    """A world that raises in its first step."""

    def step(self, *_: Any) -> Any:
        raise RuntimeError("not today")


def broken(kind: str) -> WalkType:
    """The world whose part `kind` is wrong."""

    @dataclass(frozen=True, kw_only=True, config=STRICT)
    class Settings:
        world: Literal[kind] = kind  # type: ignore[valid-type]
        num_envs: Annotated[Int, Ge(1)] = 8

    class Broken(WalkType):
        name, settings = kind, Settings

        def spec(self, _: Settings) -> WorldSpec:
            if kind == "no_spec":
                raise RuntimeError("not today\nnor tomorrow")
            changed = {"agents": 0, "branches": (0,)} if kind == "wrong_spec" else {}
            return replace(race_spec(1), **changed)  # type: ignore[arg-type]

        def make(self, settings: Settings) -> BatchWorld:
            if kind == "not_made":
                raise RuntimeError("not today\nnor tomorrow")
            return Breaking(settings.num_envs, agents=1)

    return Broken()


NO_SPEC, WRONG_SPEC = broken("no_spec"), broken("wrong_spec")
NOT_MADE, STEPS = broken("not_made"), broken("steps")

"""Worlds of a package, each broken in another way."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from aimbot_lab.foundation.settings import STRICT, Ge, Int, dataclass
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from tests.worlds.race import Race, race_spec
from tests.worlds.stranger import WalkType


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

"""PettingZoo's parallel environments as a kind of world: what is known before one is made."""

from contextlib import AbstractContextManager
from typing import Any

from aimbot_lab.foundation.named_code import NamedCode, named_code
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.worlds.gymnasium.world_type import GymnasiumType
from aimbot_lab.worlds.pettingzoo.settings import PettingZooSettings


class PettingZooType(GymnasiumType):
    """Copies of any parallel environment whose agents have equal spaces."""

    name = "pettingzoo"
    settings = PettingZooSettings
    shape_keys = ("id", "kwargs", "observation")

    def code(self, settings: Any) -> NamedCode:
        """The module that makes them."""
        parts, given = {"id": settings.id}, settings.kwargs
        return named_code("env.id", "module of", settings.id, parts=parts, arguments=given)

    def shape_of(self, settings: Any) -> Any:
        """What decides what is observed, which actions there are and how long an episode is."""
        return (
            *(settings.id, settings.kwargs, settings.max_episode_steps),
            *(settings.masks, settings.observation, settings.win is None),
        )

    def made(self, settings: Any) -> BatchWorld:
        """The environments, not yet reset."""
        from aimbot_lab.worlds.pettingzoo.world import PettingZooWorld

        return PettingZooWorld(settings, self.asked_spec(settings))

    def _new_spec(self, settings: Any) -> WorldSpec:
        with self._tried(settings) as env:
            spec: WorldSpec = env.seat_spec
            return spec

    def _tried(self, settings: Any) -> AbstractContextManager[Any]:
        from aimbot_lab.worlds.pettingzoo.joint_env import JointSettings

        return super()._tried(JointSettings.of(settings))


PETTINGZOO = PettingZooType()

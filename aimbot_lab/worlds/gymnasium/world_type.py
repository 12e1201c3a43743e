"""Gymnasium environments as a kind of world: what is known before one is made."""

from collections.abc import Mapping

from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import Bounds, MakePlayer, WorldType
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings


class GymnasiumType(WorldType):
    """Copies of any Gymnasium environment."""

    name = "gymnasium"
    settings = GymnasiumSettings
    shape_keys = ("id", "module", "kwargs")

    def __init__(self) -> None:
        self._specs: dict[str, WorldSpec] = {}

    def spec(self, settings: GymnasiumSettings) -> WorldSpec:
        """The shape of its environments; one is made, and closed, for it.

        Raises ConfigurationError where none can be made.
        """
        key = repr(settings)
        if key not in self._specs:
            self._specs[key] = self._new_spec(settings)
        return self._specs[key]

    def _new_spec(self, settings: GymnasiumSettings) -> WorldSpec:
        from aimbot_lab.worlds.gymnasium.environments import environment_shape, tried_environment

        with tried_environment(settings) as env:
            return environment_shape(env, settings)[0]

    def make(self, settings: GymnasiumSettings) -> BatchWorld:
        """The environments, not yet reset."""
        from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld

        return GymnasiumWorld(settings)

    def targets(self, settings: GymnasiumSettings | None) -> Mapping[str, int]:
        """The one target, without difficulties."""
        del settings
        return {TARGET: 0}

    def baselines(self, settings: GymnasiumSettings) -> Mapping[str, MakePlayer]:
        """A random player."""
        del settings
        return {"random": lambda world, seed: RandomAgent(world.spec, seed)}

    def parameters(self, settings: GymnasiumSettings | None) -> Mapping[str, Bounds] | None:
        """Any: the environments have them as attributes or as options of their reset."""
        del settings
        return None

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: GymnasiumSettings | None
    ) -> str | None:
        """Whether the environments have a number of that name, where it is an attribute."""
        del value
        if settings is None or settings.via == "options":
            return None
        from aimbot_lab.worlds.gymnasium.environments import tried_environment
        from aimbot_lab.worlds.gymnasium.parameters import attribute_fault

        with tried_environment(settings) as env:
            return attribute_fault(env, name)


GYMNASIUM = GymnasiumType()

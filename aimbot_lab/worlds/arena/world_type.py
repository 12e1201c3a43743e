"""The arena as a kind of world: what is known of it before one is made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    WorldSpec,
)
from aimbot_lab.foundation.world_type import (
    Bounds,
    KeptFiles,
    MakePlayer,
    RandomAgent,
)
from aimbot_lab.worlds.arena.greedy import GreedyAgent
from aimbot_lab.worlds.arena.presets import (
    FORM,
    kept_presets,
    lacking_presets,
    listed_presets,
    preset_count,
    presets_of,
)
from aimbot_lab.worlds.arena.replays import ArenaReplays
from aimbot_lab.worlds.arena.scenes.view import ArenaScenes
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import (
    DECLARED,
    DIFFICULTIES,
    GAPS,
    arena_spec,
    crowded_floor,
    observation_width,
    parameter_bounds,
    parameter_fault,
)
from aimbot_lab.worlds.parameters import KernelType

if TYPE_CHECKING:
    from PIL.Image import Image


def _drawn(paths: Sequence[Path]) -> "Image":
    from aimbot_lab.worlds.arena.draw import draw_preset_sheet

    return draw_preset_sheet(presets_of(paths))


class ArenaType(KernelType):
    """The FPS arena."""

    name = "arena"
    settings = ArenaSettings
    files = KeptFiles(
        key="presets",
        form=FORM,
        read=kept_presets,
        listed=listed_presets,
        count=preset_count,
        draw=_drawn,
    )
    shape_keys = ("rays", "observation", "stacked_vectors", "mouse_limit")
    bounding_keys = ("rays", *DECLARED, *GAPS)
    replays = ArenaReplays()
    scenes = ArenaScenes()
    gymnasium_ids = MappingProxyType(
        {
            "aimbot_lab/Goto-v0": {"goto": 1.0},
            "aimbot_lab/Attack-v0": {"attack": 1.0},
            "aimbot_lab/Free-v0": {"free": 1.0},
            "aimbot_lab/Mix-v0": {"goto": 1.0, "attack": 1.0, "free": 1.0},
        }
    )

    def spec(self, settings: ArenaSettings) -> WorldSpec:
        """The shape of an arena with `settings`."""
        return arena_spec(settings)

    def make(self, settings: ArenaSettings) -> BatchWorld:
        """An arena with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.arena.arena import Arena

        return Arena(settings)

    def targets(self, settings: ArenaSettings | None) -> Mapping[str, int]:
        """All but the stay, which never ends."""
        del settings
        return {name: levels for name, levels in DIFFICULTIES.items() if name != "stay"}

    def default_target(self) -> str:
        """Goto, which is learned soonest."""
        return "goto"

    def hardest_target(self) -> str:
        """Attack, in which both ways and shots count."""
        return "attack"

    def baselines(self, settings: ArenaSettings) -> Mapping[str, MakePlayer]:
        """A random player and a greedy one."""
        angles, turn = settings.rays.angles, settings.mouse_factor
        return {
            "random": lambda world, seed: RandomAgent(world.spec, seed),
            "greedy": lambda world, _seed: GreedyAgent(
                world.spec, ray_angles=angles, turn_per_unit=turn
            ),
        }

    def observation_size(self, settings: ArenaSettings) -> int:
        """Numbers of an observation, with earlier ones that are handed out again."""
        return settings.stacked_vectors * observation_width(settings)

    def parameters(self, settings: ArenaSettings | None) -> Mapping[str, Bounds]:
        """Every number that an episode depends on."""
        del settings
        return parameter_bounds()

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: ArenaSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those that `settings` declare."""
        return parameter_fault(name, value, settings)

    def together_fault(
        self, given: Mapping[str, ParameterValue], settings: ArenaSettings
    ) -> str | None:
        """Whether a block and the enemies fit on the floor."""
        return crowded_floor(given, settings)

    def drawing_fault(
        self, settings: ArenaSettings, target: str, weights: Sequence[float]
    ) -> str | None:
        """Whether each difficulty that has a weight has a block, where no shipped ones are."""
        lacking = lacking_presets(settings, target, weights)
        if not lacking:
            return None
        where = "env.shipped_presets is false, and env.presets holds none"
        return f"no {target} block of difficulty {', '.join(map(str, lacking))} is there: {where}"


ARENA = ArenaType()

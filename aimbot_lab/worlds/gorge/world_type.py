"""Gorge Walk as a kind of world: what is known of it before one is made."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import (
    Act,
    Bounds,
    Content,
    KeptFiles,
    MakePlayer,
    RandomAgent,
)
from aimbot_lab.worlds.gorge.baselines import Explorer
from aimbot_lab.worlds.gorge.map_choice import chosen_maps, pool_of
from aimbot_lab.worlds.gorge.maps import (
    FORM,
    MAX_SITES,
    SHIPPED,
    kept_map,
    listed_maps,
    map_text,
    maps_of,
)
from aimbot_lab.worlds.gorge.replays import GorgeReplays
from aimbot_lab.worlds.gorge.scenario import BOUNDS, form_fault, world_fault
from aimbot_lab.worlds.gorge.settings import GeneratedMaps, GorgeSettings
from aimbot_lab.worlds.gorge.spec import DIFFICULTIES, gorge_spec, observation_blocks, states_fault
from aimbot_lab.worlds.gorge.terminal_play import GorgeTerminalPlay
from aimbot_lab.worlds.kernel_type import KernelType

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_POINTS = 1000  # of a treasure
MAX_ATTEMPTS = 8  # to find maps for evaluation


DEFAULT_SHARE = 0.4  # of obstacles on a map that is made


def _made(seed: int, numbers: Mapping[str, float]) -> str:
    """The file of a generated map; `numbers` may hold `obstacle_share` and `sites`.

    Raises ConfigurationError where no map with that share of obstacles is found.
    """
    from aimbot_lab.worlds.gorge.generated_maps import generated_maps

    (grid,) = generated_maps(
        1,
        seed=seed,
        obstacle_share=numbers.get("obstacle_share", DEFAULT_SHARE),
        sites=int(numbers.get("sites", MAX_SITES)),
    )
    return map_text(grid)


def _drawn(paths: Sequence[Path]) -> "Image":
    from aimbot_lab.worlds.gorge.draw import draw_map_sheet

    return draw_map_sheet(maps_of(paths))


class GorgeType(KernelType):
    """Gorge Walk."""

    name = "gorge"
    settings = GorgeSettings
    files = KeptFiles(
        key="map",
        form=FORM,
        read=lambda entries: kept_map(*entries),
        listed=listed_maps,
        count=lambda paths: len(maps_of(paths)),
        draw=_drawn,
        single=True,
        is_own=lambda entry: bool(entry) and entry not in SHIPPED,
        make=_made,
    )
    replays = GorgeReplays()
    terminal = GorgeTerminalPlay()
    shape_keys = ("features", "view")
    bounding_keys = ("map", "max_steps", "treasure_pool")
    gymnasium_ids = MappingProxyType(
        {
            "aimbot_lab/GorgeWalk-v0": {"walk": 1.0},
            "aimbot_lab/GorgeCollect-v0": {"collect": 1.0},
            "aimbot_lab/GorgeScore-v0": {"score": 1.0},
        }
    )

    def spec(self, settings: GorgeSettings) -> WorldSpec:
        """The shape of a world with `settings`.

        Raises ConfigurationError with every fault of its map, and of the settings with that.
        """
        chosen_maps(settings)
        return gorge_spec(settings)

    def make(self, settings: GorgeSettings) -> BatchWorld:
        """A world with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.gorge.gorge import Gorge

        return Gorge(settings)

    def targets(self, settings: GorgeSettings | None) -> Mapping[str, int]:
        """To the end, with every treasure, or with a share of the best score."""
        del settings
        return DIFFICULTIES

    def hardest_target(self) -> str:
        """The game itself."""
        return "score"

    def baselines(self, settings: GorgeSettings) -> Mapping[str, MakePlayer]:
        """A random player, one that explores what it sees, and one that plays best walks."""
        return {
            "random": lambda world, seed: RandomAgent(world.spec, seed),
            "explorer": lambda _world, seed: Explorer(settings, seed),
            "optimum": lambda world, _seed: _guide(world),
        }

    def observation_size(self, settings: GorgeSettings) -> int:
        """Numbers of an observation."""
        return sum(block.columns for block in observation_blocks(settings))

    def content(self, settings: GorgeSettings) -> Content:
        """The map, or the generated ones together."""
        maps = chosen_maps(settings)
        if len(maps) == 1:
            return Content("map", maps[0].name, maps[0].content_hash)
        together = sha256("".join(one.content_hash for one in maps).encode())
        return Content("map", f"{len(maps)} generated", together.hexdigest())

    def evaluated(self, settings: GorgeSettings) -> GorgeSettings:
        """As many other maps of the generator, of which no training with `settings` meets one."""
        if not isinstance(settings.map, GeneratedMaps):
            return settings
        met = {one.content_hash for one in chosen_maps(settings)}
        fault: Exception | None = None
        for attempt in range(MAX_ATTEMPTS):
            seed = derive_seed(settings.map.generate.seed, "evaluation", attempt)
            generate = replace(settings.map.generate, seed=seed)
            other = replace(settings, map=GeneratedMaps(generate=generate))
            try:
                if met.isdisjoint(one.content_hash for one in chosen_maps(other)):
                    return other
            except ConfigurationError as error:  # a limit too short for one of them
                fault = error
        raise fault or ConfigurationError("env.map.generate: there are no other maps")

    def parameters(self, settings: GorgeSettings | None) -> Mapping[str, Bounds]:
        """Every number that an episode depends on."""
        del settings
        return BOUNDS

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: GorgeSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those of `settings` and map."""
        if settings is None:
            return form_fault(name, value)
        try:
            maps = chosen_maps(settings)
        except ConfigurationError:  # which is reported by itself
            return form_fault(name, value)
        return world_fault(name, value, settings, maps, pool_of(settings, maps))

    def reward_bound(self, settings: GorgeSettings) -> float:
        """The most that one term can earn in a step."""
        weights, score = settings.rewards, settings.score
        return max(
            abs(weights.treasure) * MAX_POINTS,
            abs(weights.finish) * score.end,
            abs(weights.step_score) * score.step * settings.max_steps,
            *(abs(weights.step_penalty), abs(weights.bump), abs(weights.revisit)),
            *(abs(weights.distance), abs(weights.treasure_distance)),
            *(abs(weights.win), abs(weights.lose)),
        )

    def states_fault(self, settings: GorgeSettings) -> str | None:
        """A table needs one map, and to see where the hero is and which treasures are left."""
        return states_fault(settings)


def _guide(world: Any) -> Act:
    from aimbot_lab.worlds.gorge.baselines import Guide

    return Guide(world)


GORGE = GorgeType()

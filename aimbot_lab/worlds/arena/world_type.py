"""The arena, as others know it, and its players without a network.

The greedy player is a scripted baseline for every target: a function from raw observations [B, D]
to world actions [B, 4] (vertical move, horizontal move, attack, mouse) that knows nothing of the
arena but its spec.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Observations,
    WorldSpec,
    columns_of,
)
from aimbot_lab.foundation.world_type import Bounds, KeptFiles, MakePlayer, RandomAgent
from aimbot_lab.worlds.arena.display import ArenaReplays, ArenaScenes
from aimbot_lab.worlds.arena.presets import (
    FORM,
    kept_presets,
    lacking_presets,
    listed_presets,
    preset_count,
    presets_of,
)
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings
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

STOP, FORWARD = 0, 1  # indices of the vertical branch
VERTICAL, ATTACK, MOUSE = 0, 2, 3  # columns of an action
NO_GOTO = -1  # where there is no such target
SEARCH_TURN = 0.2  # rad a decision, where there is nothing to turn to


class Tag(NamedTuple):
    """How rays tag what they hit."""

    label: float
    one_hot: str  # name of the column


ENEMY, PLAYER = Tag(1.0, "enemy"), Tag(2.0, "player")


class GreedyAgent:
    """Turns to its target, walks and shoots; without memory, plan or way round an obstacle.

    It turns to the seen enemy that takes the least turn, else to the FireBase centre, else it
    walks in a circle to search. It stands and shoots when the gun's line meets an enemy, and
    walks ahead otherwise. In Goto, where there is one, it ignores enemies.

    It sees with `rays` and turns `turn_per_unit` rad by a unit of the mouse action. `enemy` is how
    rays tag those it hunts.
    """

    def __init__(
        self, spec: WorldSpec, *, rays: RaySettings, turn_per_unit: float, enemy: Tag = ENEMY
    ) -> None:
        self._column = {name: index for index, name in enumerate(spec.observation_names)}
        tag = enemy.one_hot if f"ray_0_{enemy.one_hot}" in self._column else "tag"
        self._enemy_tag = enemy.label if tag == "tag" else 1.0
        self._enemy_tags = [self._column[f"ray_{ray}_{tag}"] for ray in range(rays.count)]
        self._goto = spec.targets.get("goto", NO_GOTO)
        self._limit = spec.continuous_limit
        self._turn_per_unit = turn_per_unit
        self._mouse_of_ray = (np.array(rays.angles) / turn_per_unit).astype(np.float32)

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [B, 4] for raw `observations` [B, D]."""
        observations = columns_of(observations)
        seen, ahead, towards = self._look(observations)
        goto = observations[:, self._column["target"]] == self._goto
        hunting, aimed = seen & ~goto, ahead & ~goto
        ready = observations[:, self._column["gun_ready"]] > 0
        mouse = np.where(hunting, towards, self._mouse_without_enemy(observations))
        actions = np.zeros((len(observations), 4), np.float32)
        actions[:, VERTICAL] = np.where(aimed, STOP, FORWARD)
        actions[:, ATTACK] = aimed & ready
        actions[:, MOUSE] = mouse.clip(-self._limit, self._limit)
        return actions

    def _look(self, observations: Float32Array) -> tuple[BoolArray, BoolArray, Float32Array]:
        """[B] whether a ray hits an enemy, and whether the gun's line does, the middle ray.

        And the mouse action towards the enemy that takes the least turn.
        """
        enemies = observations[:, self._enemy_tags] == self._enemy_tag
        turns = np.where(enemies, np.abs(self._mouse_of_ray), np.inf)
        towards = self._mouse_of_ray[turns.argmin(axis=1)]
        return enemies.any(axis=1), enemies[:, enemies.shape[1] // 2], towards

    def _mouse_without_enemy(self, observations: Float32Array) -> Float32Array:
        """Mouse actions [B] that turn to the FireBase centre, or search where there is none."""
        x, z = (
            observations[:, self._column[f"fire_base_{axis}"]]
            - observations[:, self._column[f"agent_{axis}"]]
            for axis in "xz"
        )
        sine, cosine = (observations[:, self._column[f"{part}_yaw"]] for part in ("sin", "cos"))
        bearing = np.arctan2(x * cosine - z * sine, x * sine + z * cosine)
        has_base = observations[:, self._column["fire_base_diameter"]] > 0
        turn = np.where(has_base, bearing, SEARCH_TURN)
        return (turn / self._turn_per_unit).astype(np.float32)


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
        rays, turn = settings.rays, settings.mouse_factor
        return {
            "random": lambda world, seed: RandomAgent(world.spec, seed),
            "greedy": lambda world, _seed: GreedyAgent(world.spec, rays=rays, turn_per_unit=turn),
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

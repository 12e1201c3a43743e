"""The arena's units: its rays, and the enemies that they hit."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.settings import ArenaSettings

LABELS = (0.0, 1.0, 2.0, -1.0)  # of a ray's tag: wall, enemy, player, none
ONE_HOT = ("wall", "enemy", "player")


def unit_blocks(settings: ArenaSettings, names: Sequence[str]) -> tuple[UnitBlock, ...]:
    """The kinds of units in observations of columns `names`, of which the newest count."""
    index = {name: column for column, name in enumerate(names)}
    rays = _rays(settings, index)
    return (rays, _enemies(settings, index)) if settings.observation.units else (rays,)


def _rays(settings: ArenaSettings, index: dict[str, int]) -> UnitBlock:
    """One unit a ray; its angle is that of the settings, whatever a lesson's parameters are."""
    if settings.observation.rays == "ml-agents":
        return _perceived(settings, index)
    labelled = settings.rays.tags == "label"
    features = ("tag", "distance") if labelled else (*ONE_HOT, "distance")
    return UnitBlock(
        kind="rays",
        features=features,
        columns=_columns("ray", settings.rays.count, features=features, index=index),
        fixed=_directions(settings),
        distance="distance",
        labels={"tag": LABELS} if labelled else {},
    )


def _perceived(settings: ArenaSettings, index: dict[str, int]) -> UnitBlock:
    """One unit a ray, from left to right, of the columns that ML-Agents has."""
    features = (*ONE_HOT, "nothing", "fraction")
    columns = _columns("ray", settings.rays.count, features=features, index=index)
    return UnitBlock(kind="rays", features=features, columns=columns, fixed=_directions(settings))


def _directions(settings: ArenaSettings) -> np.ndarray:
    """Sine and cosine [R, 2] of each ray's angle to the gun's line."""
    angles = np.array(settings.rays.angles)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _enemies(settings: ArenaSettings, index: dict[str, int]) -> UnitBlock:
    features = ("seen", "ahead", "right", "hits_left", "is_target")
    return UnitBlock(
        kind="enemies",
        features=features,
        columns=_columns("enemy", core.ENEMY_SLOTS, features=features, index=index),
        fixed=np.zeros((core.ENEMY_SLOTS, 0), np.float32),
        seen="seen",
        place=("ahead", "right"),
        place_scale=settings.floor_size,
        target=True,
    )


def _columns(
    prefix: str, slots: int, *, features: Sequence[str], index: dict[str, int]
) -> np.ndarray:
    named = [[f"{prefix}_{slot}_{name}" for name in features] for slot in range(slots)]
    return np.array([[index[name] for name in row] for row in named], np.int64)

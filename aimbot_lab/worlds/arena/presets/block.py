"""A target block as data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """What a target block holds, in metres in the block's frame, (0, 0) to (10, 10)."""

    name: str  # unique within its target
    target: str  # "goto" or "attack"
    difficulty: int  # 1 (open) to 5 (hardest)
    fire_base: tuple[float, float, float]  # centre x, centre z, diameter
    obstacles: tuple[tuple[float, float, float, float], ...]  # min x, min z, max x, max z
    enemies: tuple[tuple[float, float], ...] = ()  # x, z; attack only

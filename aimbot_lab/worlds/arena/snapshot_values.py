"""What a snapshot may hold: kernels check no bounds, and a snapshot may come from a file."""

from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.sampler_kinds import KINDS
from aimbot_lab.worlds.arena.core.state import (
    DIFFICULTY_COUNT,
    NO_HIT,
    TARGET_COUNT,
    ArenaTables,
)
from aimbot_lab.worlds.snapshot_checks import LARGEST, check_range

COUNTERS = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")


def check_values(snapshot: Mapping[str, np.ndarray], tables: ArenaTables, *, scenario: str) -> None:
    """Raise MisuseError where a value of `snapshot` would lead a kernel out of its arrays.

    `scenario` is what the names of the scenario's arrays begin with.
    """
    limits = {
        **_of_rows(tables, snapshot),
        scenario + "sampler": (0, max(KINDS)),
        scenario + "sampler_range_count": (0, snapshot[scenario + "sampler_ranges"].shape[1]),
        scenario + "number": (0, LARGEST),
    }
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)
    own = tables.scenario
    for name, array in (("bounds", own.bounds), ("whole", own.whole)):
        if not np.array_equal(snapshot[scenario + name], array):
            raise MisuseError(f"snapshot: {scenario}{name} is not that of this arena")
    low, high = own.bounds.T
    constant = snapshot[scenario + "sampler"] == 0
    first = snapshot[scenario + "sampler_values"][:, 0]
    check_range(
        scenario + "sampler_values", first[constant], low=low[constant], high=high[constant]
    )
    begun = snapshot["episode"] > 0
    check_range("parameters", snapshot["parameters"][begun], low=low, high=high)


def _of_rows(tables: ArenaTables, snapshot: Mapping[str, np.ndarray]) -> dict[str, tuple[int, int]]:
    """Lowest and highest value of the arrays that rows count or choose by."""
    enemies, boxes = (snapshot[name].shape[1] for name in ("enemies", "obstacles"))
    return {
        **dict.fromkeys(COUNTERS, (0, LARGEST)),
        "target": (0, TARGET_COUNT - 1),
        "difficulty": (0, DIFFICULTY_COUNT),
        "preset": (-1, max(len(tables.presets.obstacle_count) - 1, 0)),
        "block_turns": (0, 3),
        "obstacle_count": (0, boxes),
        "enemy_count": (0, enemies),
        "ray_hit": (NO_HIT, enemies - 1),
    }

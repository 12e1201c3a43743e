"""Snapshots of a gorge: named arrays, with what a world must have to go on from them."""

import numpy as np

from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.map_choice import Maps
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.snapshot_checks import (
    LARGEST,
    OF_SCENARIO,
    Arrays,
    check_arrays,
    check_range,
    check_samplers,
    setting_lines,
)

OF_SAMPLERS = "sampler_tables."  # what the names of the samplers' arrays begin with
RANGES = OF_SAMPLERS + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and maps are compared by what
# they hold.
NOT_COMPARED = ("num_envs", "threads", "map")


def fingerprint(settings: GorgeSettings, maps: Maps) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a world with `settings` on `maps`."""
    lines = setting_lines(settings, without=NOT_COMPARED)
    return np.array([*lines, *(f"map.{k}={one.content_hash}" for k, one in enumerate(maps))])


def check_snapshot(snapshot: Arrays, own: Arrays, *, maps: int) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the world of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    limits = {**_limits(maps), **check_samplers(snapshot, own, OF_SAMPLERS)}
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)


def _limits(maps: int) -> dict[str, tuple[int, int]]:
    """Lowest and highest value of the arrays that kernels count or choose by."""
    counters = ("steps", "bumps", "episode", "order", "scenario", "clock")
    sites = (0, (1 << core.SITES) - 1)
    return {
        **dict.fromkeys((*counters, OF_SCENARIO + "number"), (0, LARGEST)),
        **dict.fromkeys(("x", "z"), (0, core.SIDE - 1)),
        **dict.fromkeys(("placed", "left"), sites),
        "map": (0, maps - 1),
        "start": (0, core.CELLS - 1),
        "target": (0, core.TARGET_COUNT - 1),
        "difficulty": (0, core.DIFFICULTY_COUNT),
    }

"""Snapshots of a duel: named arrays, with what a world must have to go on from them.

Kernels check no bounds, and a snapshot may come from a file: values that choose are checked.
"""

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.duel.core.state import (
    HEALTH,
    HIT,
    IN_ARENA,
    LEVELS,
    DuelTables,
    LayoutTables,
)
from aimbot_lab.worlds.duel.kinds import KINDS
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.snapshot_checks import (
    LARGEST,
    OF_SCENARIO,
    Arrays,
    check_arrays,
    check_range,
    check_samplers,
    content_line,
    setting_lines,
)

OF_SEATS = "seats."  # what a snapshot calls the arrays of seats
RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
NOT_COMPARED = ("num_envs", "threads", "layouts", "shipped_layouts")  # halls by what they hold
COUNTERS = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")


def fingerprint(settings: DuelSettings, layouts: LayoutTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a duel."""
    lines = setting_lines(settings, without=NOT_COMPARED)
    return np.array([*lines, content_line("layouts", layouts)])


def check_snapshot(snapshot: Arrays, own: Arrays, tables: DuelTables) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the duel of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    limits = {**_limits(snapshot, tables), **check_samplers(snapshot, own, OF_SCENARIO)}
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)
    _check_traits(snapshot, *own[OF_SCENARIO + "bounds"].T)


def _limits(snapshot: Arrays, tables: DuelTables) -> dict[str, tuple[int, int]]:
    """Lowest and highest value of the arrays that matches count or choose by."""
    limits = {
        name: (0, LARGEST)
        for name in snapshot
        if name.rpartition(".")[2] in COUNTERS and not name.startswith(OF_SCENARIO)
    }
    boxes = tables.layouts.boxes.shape[1]
    return {
        **limits,
        OF_SCENARIO + "number": (0, LARGEST),
        "layout": (0, len(tables.layouts.box_count) - 1),
        "difficulty": (0, LEVELS),
        "kind": (0, len(KINDS) - 1),
        "loadout": (-1, len(tables.loadouts) - 1),
        "shot": (0, HIT),
        "health": (0, 100),
        OF_SEATS + "obstacle_count": (0, boxes),
        OF_SEATS + "enemy_count": (1, 1),
        OF_SEATS + "target": (arena_core.TARGET.free, arena_core.TARGET.free),
        OF_SEATS + "ray_hit": (arena_core.NO_HIT, 0),
    }


def _check_traits(snapshot: Arrays, low: np.ndarray, high: np.ndarray) -> None:
    begun = snapshot["episode"] > 0
    both = np.tile(begun, 2)
    count = len(IN_ARENA)
    traits = low[-count:], high[-count:]
    check_range("traits", snapshot["traits"][both], low=traits[0], high=traits[1])
    passed = IN_ARENA >= 0
    seats = snapshot[OF_SEATS + "parameters"][both][:, IN_ARENA[passed]]
    check_range(OF_SEATS + "parameters", seats, low=traits[0][passed], high=traits[1][passed])
    healths = snapshot["traits"][both][:, HEALTH]
    if (snapshot["health"][both] > healths).any():
        raise MisuseError("snapshot: health exceeds what an agent begins with")

"""Snapshots of a duel: named arrays, with what a world must have to go on from them.

Kernels check no bounds, and a snapshot may come from a file: values that choose are checked.
"""

import hashlib
from collections.abc import Mapping

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.sampler_kinds import CONSTANT
from aimbot_lab.foundation.kernels.sampler_kinds import RANGES as KIND_OF_RANGES
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.duel.core.state import (
    HEALTH,
    HIT,
    IN_ARENA,
    LEVELS,
    DuelState,
    DuelTables,
    LayoutTables,
    ScenarioTables,
)
from aimbot_lab.worlds.duel.kinds import KINDS
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.snapshot_checks import (
    FITS,
    LARGEST,
    Arrays,
    check_arrays,
    check_range,
    setting_lines,
)

OF_SEATS = "seats."  # what a snapshot calls the arrays of seats
OF_SCENARIO = "scenario_tables."  # and those of the scenario
RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
NOT_COMPARED = ("num_envs", "threads", "layouts", "shipped_layouts")  # halls by what they hold
COUNTERS = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")
SAMPLED = ("sampler", "sampler_range_count", "number")


def fingerprint(settings: DuelSettings, layouts: LayoutTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a duel."""
    digest = hashlib.sha256()
    for array in layouts:
        digest.update(str(array.shape).encode() + array.tobytes())
    lines = setting_lines(settings, without=NOT_COMPARED)
    return np.array([*lines, f"layouts={digest.hexdigest()[:16]}"])


def state_arrays(state: DuelState) -> dict[str, np.ndarray]:
    """The arrays of `state` by the names of a snapshot, not copied."""
    named = dict(state._asdict())
    seats = named.pop("seats")
    return {**named, **{OF_SEATS + name: array for name, array in seats._asdict().items()}}


def arrays_of(state: DuelState, scenario: ScenarioTables, fits: np.ndarray) -> Arrays:
    """The arrays of a snapshot by name, not copied."""
    named = {OF_SCENARIO + name: array for name, array in scenario._asdict().items()}
    return {**state_arrays(state), **named, FITS: fits}


def scenario_of(snapshot: Arrays) -> ScenarioTables:
    """Copies of the scenario's arrays."""
    fields = ScenarioTables._fields
    return ScenarioTables(**{name: snapshot[OF_SCENARIO + name].copy() for name in fields})


def check_snapshot(snapshot: Arrays, own: Arrays, tables: DuelTables) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the duel of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    for name, (low, high) in _limits(snapshot, tables).items():
        check_range(name, snapshot[name], low=low, high=high)
    _check_parameters(snapshot, tables.scenario)


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
        OF_SCENARIO + "sampler": (0, KIND_OF_RANGES),
        OF_SCENARIO + "sampler_range_count": (0, snapshot[RANGES].shape[1]),
        "layout": (0, len(tables.layouts.box_count) - 1),
        "difficulty": (0, LEVELS),
        "kind": (0, len(KINDS) - 1),
        "loadout": (-1, len(tables.loadouts) - 1),
        "shot": (0, HIT),
        "health": (0, 100),
        OF_SEATS + "obstacle_count": (0, boxes),
        OF_SEATS + "enemy_count": (1, 1),
        OF_SEATS + "target": (arena_core.FREE, arena_core.FREE),
        OF_SEATS + "ray_hit": (arena_core.NO_HIT, 0),
    }


def _check_parameters(snapshot: Mapping[str, np.ndarray], own: ScenarioTables) -> None:
    for name, array in (("bounds", own.bounds), ("whole", own.whole)):
        if not np.array_equal(snapshot[OF_SCENARIO + name], array):
            raise MisuseError(f"snapshot: {OF_SCENARIO}{name} is not that of this duel")
    low, high = own.bounds.T
    constant = snapshot[OF_SCENARIO + "sampler"] == CONSTANT
    first = snapshot[OF_SCENARIO + "sampler_values"][:, 0]
    name = OF_SCENARIO + "sampler_values"
    check_range(name, first[constant], low=low[constant], high=high[constant])
    begun = snapshot["episode"] > 0
    check_range("parameters", snapshot["parameters"][begun], low=low, high=high)
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

"""Snapshots of a gorge: named arrays, with what a world must have to go on from them."""

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels import sampler_kinds as kinds
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import (
    GorgeState,
    GorgeTables,
    SamplerTables,
    ScenarioTables,
)
from aimbot_lab.worlds.gorge.map_choice import Maps
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.snapshot_checks import (
    FITS,
    LARGEST,
    Arrays,
    check_arrays,
    check_range,
    setting_lines,
)

OF_SCENARIO, OF_SAMPLERS = "scenario_tables.", "sampler_tables."  # what names begin with
RANGES = OF_SAMPLERS + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and maps are compared by what
# they hold.
NOT_COMPARED = ("num_envs", "threads", "map")


def fingerprint(settings: GorgeSettings, maps: Maps) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a world with `settings` on `maps`."""
    lines = setting_lines(settings, without=NOT_COMPARED)
    return np.array([*lines, *(f"map.{k}={one.content_hash}" for k, one in enumerate(maps))])


def arrays_of(state: GorgeState, tables: GorgeTables, fits: np.ndarray) -> Arrays:
    """The arrays of a snapshot by name, not copied."""
    drawn = {OF_SCENARIO + name: array for name, array in tables.scenario._asdict().items()}
    given = {OF_SAMPLERS + name: array for name, array in tables.samplers._asdict().items()}
    return {**state._asdict(), **drawn, **given, FITS: fits}


def tables_of(snapshot: Arrays) -> tuple[ScenarioTables, SamplerTables]:
    """Copies of what the next episodes of `snapshot` are drawn from."""
    drawn = {name: snapshot[OF_SCENARIO + name].copy() for name in ScenarioTables._fields}
    given = {name: snapshot[OF_SAMPLERS + name].copy() for name in SamplerTables._fields}
    return ScenarioTables(**drawn), SamplerTables(**given)


def check_snapshot(snapshot: Arrays, own: Arrays, *, maps: int) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the world of `own`."""
    check_arrays(snapshot, own, growing=(RANGES,))
    _check_values(snapshot, own, maps)


def _check_values(snapshot: Arrays, own: Arrays, maps: int) -> None:
    """Raise MisuseError where a value would lead a kernel out of its arrays."""
    for name, (low, high) in _limits(snapshot, maps).items():
        check_range(name, snapshot[name], low=low, high=high)
    for name in (OF_SAMPLERS + "bounds", OF_SAMPLERS + "whole"):
        if not np.array_equal(snapshot[name], own[name]):
            raise MisuseError(f"snapshot: {name} is not that of this world")
    low, high = own[OF_SAMPLERS + "bounds"].T
    constant = snapshot[OF_SAMPLERS + "sampler"] == kinds.CONSTANT
    first = snapshot[OF_SAMPLERS + "sampler_values"][:, 0]
    check_range(
        OF_SAMPLERS + "sampler_values", first[constant], low=low[constant], high=high[constant]
    )
    begun = snapshot["episode"] > 0
    check_range("parameters", snapshot["parameters"][begun], low=low, high=high)


def _limits(snapshot: Arrays, maps: int) -> dict[str, tuple[int, int]]:
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
        OF_SAMPLERS + "sampler": (0, max(kinds.KINDS)),
        OF_SAMPLERS + "sampler_range_count": (0, snapshot[RANGES].shape[1]),
    }

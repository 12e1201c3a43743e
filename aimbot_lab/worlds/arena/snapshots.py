"""Snapshots of an arena: named arrays, with what an arena must have to go on from them."""

import hashlib

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core.state import ArenaState, PresetTables, ScenarioTables
from aimbot_lab.worlds.arena.enemy_capacity import (
    MAX_ENEMIES_OF_ROW,
    MAX_OBSTACLES_OF_ROW,
    OF_ENEMIES,
    OF_ROOM,
)
from aimbot_lab.worlds.arena.scenes.records import OF_SCENES
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.snapshot_checks import FITS, Arrays, check_arrays, setting_lines

OF_SCENARIO = "scenario_tables."  # what a snapshot calls the scenario's arrays
RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and presets are compared
# by what they hold.
NOT_COMPARED = ("num_envs", "threads", "presets")
ADDED = frozenset({"observation.units=False"})
"""Defaults of settings that snapshots of before do not name."""


def fingerprint(settings: ArenaSettings, presets: PresetTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit an arena."""
    told = setting_lines(settings, without=NOT_COMPARED)
    lines = [line for line in told if line not in ADDED]
    digest = hashlib.sha256()
    for array in presets:
        digest.update(str(array.shape).encode() + array.tobytes())
    return np.array([*lines, f"presets={digest.hexdigest()[:16]}"])


def arrays_of(state: ArenaState, scenario: ScenarioTables, fits: np.ndarray) -> Arrays:
    """The arrays of a snapshot by name, not copied."""
    named = {OF_SCENARIO + name: array for name, array in scenario._asdict().items()}
    return {**state._asdict(), **named, FITS: fits}


def check_snapshot(snapshot: Arrays, own: Arrays) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the arena of `own`."""
    named = {name: array for name, array in snapshot.items() if name not in OF_SCENES}
    check_arrays(named, own, growing=(RANGES, *OF_ROOM))
    for name in OF_ENEMIES:
        given, first = snapshot[name], snapshot[OF_ENEMIES[0]]
        if given.shape[1] != first.shape[1] or given.shape[1] > MAX_ENEMIES_OF_ROW:
            raise MisuseError(f"snapshot: {name} has room for {given.shape[1]} enemies")
    if snapshot["obstacles"].shape[1] > MAX_OBSTACLES_OF_ROW:
        raise MisuseError(f"snapshot: obstacles has room for {snapshot['obstacles'].shape[1]}")

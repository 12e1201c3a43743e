"""Snapshots of an arena: named arrays, with what an arena must have to go on from them.

Kernels check no bounds, and a snapshot may come from a file: values that choose are checked.
"""

from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.sampler_arrays import sampler_arrays
from aimbot_lab.worlds.arena.capacity import (
    MAX_ENEMIES_OF_ROW,
    MAX_OBSTACLES_OF_ROW,
    OF_ENEMIES,
    OF_ROOM,
)
from aimbot_lab.worlds.arena.core.state import (
    DIFFICULTY_COUNT,
    NO_HIT,
    PARAMETERS,
    REWARD_TERMS,
    SUMS,
    TARGET_COUNT,
    TERM_OF,
    ArenaTables,
    PresetTables,
)
from aimbot_lab.worlds.arena.scenes.placing import OF_SCENES
from aimbot_lab.worlds.arena.settings import ArenaSettings
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

RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and presets are compared
# by what they hold.
NOT_COMPARED = ("num_envs", "threads", "shipped_presets", "presets")
OLDEST = 35  # parameters of the oldest snapshots that are read; of those that came later 0 is none
ADDED = frozenset(
    {
        "observation.camera=None",
        "observation.rays='plain'",
        "observation.units=False",
        *(f"{name}=0.0" for name in PARAMETERS[OLDEST:]),
    }
)
"""Defaults of settings that snapshots of before do not name."""
COUNTERS = ("decisions", "gun_ticks", "episode", "order", "scenario", "clock")
OF_PARAMETERS = (*sampler_arrays(()), "bounds", "whole")  # a scenario's arrays [P, ...]


def fingerprint(settings: ArenaSettings, presets: PresetTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit an arena."""
    told = setting_lines(settings, without=NOT_COMPARED)
    lines = [line for line in told if line not in ADDED]
    return np.array([*lines, content_line("presets", presets)])


def with_new_parameters(snapshot: Arrays, own: Arrays) -> Arrays:
    """`snapshot` with the parameters that arenas of earlier versions did not have, each at 0.

    The same where it has them, or is nothing that such an arena wrote.
    """
    named = [OF_SCENARIO + name for name in OF_PARAMETERS]
    if any(_lacking(snapshot.get(name), 0, len(PARAMETERS), OLDEST) is None for name in named):
        return snapshot
    longer = {name: _with_zeros(snapshot[name], 0, len(PARAMETERS)) for name in named}
    for name in (OF_SCENARIO + "bounds", OF_SCENARIO + "whole"):
        longer[name][len(snapshot[name]) :] = own[name][len(snapshot[name]) :]
    return with_new_columns({**snapshot, **longer})


def with_new_columns(arrays: Arrays) -> Arrays:
    """`arrays` of a state of an earlier version, in which what it lacks is 0.

    That is parameters, the sums of the terms among them, and counts.
    """
    numbers: Any = arrays.get("parameters")
    sums: Any = arrays.get("terms")
    lacking = _lacking(numbers, 1, len(PARAMETERS), OLDEST)
    terms = 0 if lacking is None else int(TERM_OF[-lacking - 1]) + 1
    if lacking is None or _lacking(sums, 1, SUMS, terms) is None:
        return arrays
    before = _with_zeros(sums[:, :terms], 1, len(REWARD_TERMS))
    longer = np.concatenate([before, sums[:, terms:]], axis=1)
    return {
        **arrays,
        "parameters": _with_zeros(numbers, 1, len(PARAMETERS)),
        "terms": _with_zeros(longer, 1, SUMS),
    }


def _lacking(array: Any, axis: int, count: int, least: int) -> int | None:
    """How many of `count` entries `array` lacks along `axis`; None where it has not `least`."""
    if not isinstance(array, np.ndarray) or array.ndim <= axis:
        return None
    return count - array.shape[axis] if least <= array.shape[axis] <= count else None


def _with_zeros(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    more = count - array.shape[axis]
    return np.pad(array, [(0, more if number == axis else 0) for number in range(array.ndim)])


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


def check_values(snapshot: Arrays, own: Arrays, tables: ArenaTables) -> None:
    """Raise MisuseError where a value of `snapshot` would lead a kernel out of its arrays."""
    enemies, boxes = (snapshot[name].shape[1] for name in ("enemies", "obstacles"))
    limits = {
        **dict.fromkeys((*COUNTERS, OF_SCENARIO + "number"), (0, LARGEST)),
        "target": (0, TARGET_COUNT - 1),
        "difficulty": (0, DIFFICULTY_COUNT),
        "preset": (-1, max(len(tables.presets.obstacle_count) - 1, 0)),
        "block_turns": (0, 3),
        "obstacle_count": (0, boxes),
        "enemy_count": (0, enemies),
        "ray_hit": (NO_HIT, enemies - 1),
        **check_samplers(snapshot, own, OF_SCENARIO),
    }
    for name, (low, high) in limits.items():
        check_range(name, snapshot[name], low=low, high=high)

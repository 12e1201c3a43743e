"""Snapshots of a gorge: named arrays, with what a world must have to go on from them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

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

Arrays = Mapping[str, np.ndarray]

OF_SCENARIO, OF_SAMPLERS = "scenario_tables.", "sampler_tables."  # what names begin with
FITS = "fits"  # the lines "setting=value" that a world must share
RANGES = OF_SAMPLERS + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and maps are compared by what
# they hold.
NOT_COMPARED = ("num_envs", "threads", "map")
LARGEST = 2**62  # of a counter, far from where it would turn over


def fingerprint(settings: GorgeSettings, maps: Maps) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit a world with `settings` on `maps`."""
    lines = [
        line
        for name, value in asdict(settings).items()
        if name not in NOT_COMPARED
        for line in _lines(name, value)
    ]
    return np.array([*lines, *(f"map.{k}={one.content_hash}" for k, one in enumerate(maps))])


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _lines(f"{name}.{part}", inner)
    else:
        yield f"{name}={value!r}"


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
    for name in {**own, **snapshot}:
        if (name in own) != (name in snapshot):
            reason = "is missing" if name in own else "is no array of this world"
            raise MisuseError(f"snapshot: {name} {reason}")
    _check_fits(snapshot[FITS], own[FITS])
    for name, array in own.items():
        given = snapshot[name]
        if not isinstance(given, np.ndarray) or _form(name, given) != _form(name, array):
            raise MisuseError(f"snapshot: {name} is {_shown(given)}; here it is {_shown(array)}")
    _check_values(snapshot, own, maps)


def _check_fits(given: Any, own: np.ndarray) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind != "U" or given.ndim != 1:
        raise MisuseError(f"snapshot: {FITS} is {_shown(given)}; here it is {_shown(own)}")
    theirs, ours = (dict(line.split("=", 1) for line in lines.tolist()) for lines in (given, own))
    differing = [
        f"{name} is {theirs.get(name, 'missing')[:12]}, here {ours.get(name, 'unknown')[:12]}"
        for name in {**ours, **theirs}
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise MisuseError(f"snapshot: it is of another world: {'; '.join(differing)}")


def _check_values(snapshot: Arrays, own: Arrays, maps: int) -> None:
    """Raise MisuseError where a value would lead a kernel out of its arrays."""
    for name, (low, high) in _limits(snapshot, maps).items():
        _check_range(name, snapshot[name], low=low, high=high)
    for name in (OF_SAMPLERS + "bounds", OF_SAMPLERS + "whole"):
        if not np.array_equal(snapshot[name], own[name]):
            raise MisuseError(f"snapshot: {name} is not that of this world")
    low, high = own[OF_SAMPLERS + "bounds"].T
    constant = snapshot[OF_SAMPLERS + "sampler"] == kinds.CONSTANT
    first = snapshot[OF_SAMPLERS + "sampler_values"][:, 0]
    _check_range(
        OF_SAMPLERS + "sampler_values", first[constant], low=low[constant], high=high[constant]
    )
    begun = snapshot["episode"] > 0
    _check_range("parameters", snapshot["parameters"][begun], low=low, high=high)


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
        OF_SAMPLERS + "sampler": (0, kinds.RANGES),
        OF_SAMPLERS + "sampler_range_count": (0, snapshot[RANGES].shape[1]),
    }


def _check_range(
    name: str, values: np.ndarray, *, low: int | np.ndarray, high: int | np.ndarray
) -> None:
    wrong = ~((values >= low) & (values <= high))  # so that NaN is wrong as well
    if wrong.any():
        raise MisuseError(f"snapshot: {name} holds {values[wrong][0]:g}, which it never does")


def _form(name: str, array: np.ndarray) -> tuple[Any, ...]:
    """What must be alike in two arrays of this name."""
    if name == FITS:
        return ()
    shape = array.shape
    if name == RANGES and array.ndim > 1:
        shape = (shape[0], -1, *shape[2:])
    return shape, array.dtype


def _shown(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} {array.shape}"

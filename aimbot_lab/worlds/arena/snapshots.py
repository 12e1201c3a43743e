"""Snapshots of an arena: named arrays, with what an arena must have to go on from them."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

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

OF_SCENARIO = "scenario_tables."  # what a snapshot calls the scenario's arrays
FITS = "fits"  # what it calls the lines "setting=value" that an arena must share
RANGES = OF_SCENARIO + "sampler_ranges"  # as many to a parameter as the scenario needs
# The number of rows is seen by the arrays, threads change nothing, and presets are compared
# by what they hold.
NOT_COMPARED = ("num_envs", "threads", "presets")

Arrays = Mapping[str, np.ndarray]


def fingerprint(settings: ArenaSettings, presets: PresetTables) -> np.ndarray:
    """Lines "name=value" that tell which snapshots fit an arena."""
    lines = [
        line
        for name, value in asdict(settings).items()
        if name not in NOT_COMPARED
        for line in _lines(name, value)
    ]
    digest = hashlib.sha256()
    for array in presets:
        digest.update(str(array.shape).encode() + array.tobytes())
    return np.array([*lines, f"presets={digest.hexdigest()[:16]}"])


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _lines(f"{name}.{part}", inner)
    else:
        yield f"{name}={value!r}"


def arrays_of(state: ArenaState, scenario: ScenarioTables, fits: np.ndarray) -> Arrays:
    """The arrays of a snapshot by name, not copied."""
    named = {OF_SCENARIO + name: array for name, array in scenario._asdict().items()}
    return {**state._asdict(), **named, FITS: fits}


def check_snapshot(snapshot: Arrays, own: Arrays) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` fits the arena of `own`."""
    named = snapshot.keys() - OF_SCENES.keys()  # in a snapshot where rows were edited
    differing = [name for name in {**own, **snapshot} if (name in own) != (name in named)]
    for name in differing:
        reason = "is missing" if name in own else "is no array of this arena"
        raise MisuseError(f"snapshot: {name} {reason}")
    _check_fits(snapshot[FITS], own[FITS])
    for name, array in own.items():
        given = snapshot[name]
        if not isinstance(given, np.ndarray) or _form(name, given) != _form(name, array):
            raise MisuseError(f"snapshot: {name} is {_shown(given)}; here it is {_shown(array)}")
    for name in OF_ENEMIES:
        given, first = snapshot[name], snapshot[OF_ENEMIES[0]]
        if given.shape[1] != first.shape[1] or given.shape[1] > MAX_ENEMIES_OF_ROW:
            raise MisuseError(f"snapshot: {name} has room for {given.shape[1]} enemies")
    if snapshot["obstacles"].shape[1] > MAX_OBSTACLES_OF_ROW:
        raise MisuseError(f"snapshot: obstacles has room for {snapshot['obstacles'].shape[1]}")


def _check_fits(given: Any, own: np.ndarray) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind != "U" or given.ndim != 1:
        raise MisuseError(f"snapshot: {FITS} is {_shown(given)}; here it is {_shown(own)}")
    theirs, ours = (dict(line.split("=", 1) for line in lines.tolist()) for lines in (given, own))
    differing = [
        f"{name} is {theirs.get(name, 'missing')}, here {ours.get(name, 'unknown')}"
        for name in {**ours, **theirs}
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise MisuseError(f"snapshot: it is of another arena: {'; '.join(differing)}")


def _form(name: str, array: np.ndarray) -> tuple[Any, ...]:
    """What must be alike in two arrays of this name."""
    if name == FITS:
        return ()
    shape = array.shape
    if name in (RANGES, *OF_ROOM) and array.ndim > 1:
        shape = (shape[0], -1, *shape[2:])
    return shape, array.dtype


def _shown(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} {array.shape}"

"""What a snapshot must share with the world that goes on from it; snapshots are named arrays."""

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.sampler_kinds import CONSTANT, KINDS

FITS = "fits"  # what a snapshot calls the lines "setting=value" that a world must share
OF_SCENARIO = "scenario_tables."  # what the names of the scenario's arrays begin with
LARGEST = 2**62  # of a counter, far from where it would turn over
SHOWN = 16  # characters of a value that differs

Arrays = Mapping[str, np.ndarray]


def setting_lines(settings: Any, *, without: Container[str]) -> list[str]:
    """Lines "name=value" of the dataclass `settings`, those of inner ones by "outer.inner"."""
    return [
        line
        for name, value in asdict(settings).items()
        if name not in without
        for line in _lines(name, value)
    ]


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _lines(f"{name}.{part}", inner)
    else:
        yield f"{name}={value!r}"


def check_arrays(snapshot: Arrays, own: Arrays, *, growing: Container[str]) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` has the arrays of `own`.

    Those `growing` may differ in their second axis, and the lines under "fits" must be the same.
    """
    for name in {**own, **snapshot}:
        if (name in own) != (name in snapshot):
            reason = "is missing" if name in own else "is no array of this world"
            raise MisuseError(f"snapshot: {name} {reason}")
    _check_fits(snapshot[FITS], own[FITS])
    for name, array in own.items():
        given = snapshot[name]
        if name != FITS and _form(given, name in growing) != _form(array, name in growing):
            raise MisuseError(f"snapshot: {name} is {_shown(given)}; here it is {_shown(array)}")


def check_range(
    name: str, values: np.ndarray, *, low: int | np.ndarray, high: int | np.ndarray
) -> None:
    """Raise MisuseError unless all of `values`, the array `name`, lie in `low` to `high`."""
    wrong = ~((values >= low) & (values <= high))  # so that NaN is wrong as well
    if wrong.any():
        raise MisuseError(f"snapshot: {name} holds {values[wrong][0]:g}, which it never does")


def check_samplers(snapshot: Arrays, own: Arrays, prefix: str) -> dict[str, tuple[int, int]]:
    """Limits of the arrays below `prefix` by which kernels draw parameters.

    Raises MisuseError where bounds are not those of the world whose arrays are `own`, and where a
    constant, or a parameter of an episode that has begun, lies beyond them.
    """
    for name in (prefix + "bounds", prefix + "whole"):
        if not np.array_equal(snapshot[name], own[name]):
            raise MisuseError(f"snapshot: {name} is not that of this world")
    low, high = own[prefix + "bounds"].T
    constant = snapshot[prefix + "sampler"] == CONSTANT
    first = snapshot[prefix + "sampler_values"][:, 0]
    check_range(prefix + "sampler_values", first[constant], low=low[constant], high=high[constant])
    begun = snapshot["episode"] > 0
    check_range("parameters", snapshot["parameters"][begun], low=low, high=high)
    return {
        prefix + "sampler": (0, max(KINDS)),
        prefix + "sampler_range_count": (0, snapshot[prefix + "sampler_ranges"].shape[1]),
    }


def content_line(name: str, arrays: Iterable[np.ndarray]) -> str:
    """A line "name=value" that tells `arrays` from others."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return f"{name}={digest.hexdigest()[:16]}"


def _check_fits(given: Any, own: np.ndarray) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind != "U" or given.ndim != 1:
        raise MisuseError(f"snapshot: {FITS} is {_shown(given)}; here it is {_shown(own)}")
    theirs, ours = (dict(line.split("=", 1) for line in lines.tolist()) for lines in (given, own))
    differing = [
        f"{name} is {theirs.get(name, 'missing')[:SHOWN]}, here {ours.get(name, 'unknown')[:SHOWN]}"
        for name in {**ours, **theirs}
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise MisuseError(f"snapshot: it is of another world: {'; '.join(differing)}")


def _form(array: Any, grows: bool) -> tuple[Any, ...] | None:
    """What must be alike in two arrays of a name; None for what is no array."""
    if not isinstance(array, np.ndarray):
        return None
    shape: tuple[int, ...] = array.shape
    if grows and array.ndim > 1:
        shape = (shape[0], -1, *shape[2:])
    return shape, array.dtype


def _shown(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} {array.shape}"

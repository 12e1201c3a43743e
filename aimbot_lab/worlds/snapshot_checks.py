"""What a snapshot must share with the world that goes on from it; snapshots are named arrays."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError

FITS = "fits"  # what a snapshot calls the lines "setting=value" that a world must share
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

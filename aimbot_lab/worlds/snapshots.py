"""Snapshots of worlds: named arrays, what a world must share to go on from them, and their parts.

A world with the ability `parts` shares out its rows: snapshots of all parts join to the whole's, to
the bit, and are cut from it.
"""

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.kernels.sampler_arrays import CONSTANT, KINDS
from aimbot_lab.foundation.world import Int64Array

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


OF_ALL = ("clock", "sampler_key", FITS)  # arrays that are not by row
TABLES = ("scenario_tables.", "sampler_tables.")  # what the names of further ones begin with
ROWS = "episode"  # an array [B] that every such world has


class PartWorld(Protocol):
    """What a world with the ability `parts` has beside what all worlds have."""

    def place(self, first_row: int, total_rows: int) -> None:
        """Be the rows from `first_row` on of a world of `total_rows`; before the first reset."""
        ...

    @property
    def first_row(self) -> int:
        """Which row of all its first one is."""
        ...

    def running(self) -> tuple[Int64Array, Int64Array]:
        """Rank and scenario [N] of the episode that runs in each seat: the world's own arrays."""
        ...

    def joined(self, parts: Sequence[Arrays]) -> Arrays:
        """The snapshot of the whole from those of all parts, in the order of their rows."""
        ...

    def part_of(self, whole: Arrays) -> Arrays:
        """Of the snapshot of the whole that which this world can restore."""
        ...


def joined(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """The snapshot of the whole from those of its `parts`, in the order of their rows.

    It is what one world with all rows would give, to the bit. Raises MisuseError where they are not
    parts of one world.
    """
    return {name: _whole(name, parts) for name in parts[0]}


def part_of(whole: Arrays, first_row: int, rows: int) -> dict[str, np.ndarray]:
    """The snapshot of `rows` rows of `whole`, from `first_row` on."""
    total = len(whole[ROWS])
    return {
        name: array if _is_of_all(name) else _cut(array, total, slice(first_row, first_row + rows))
        for name, array in whole.items()
    }


def _is_of_all(name: str) -> bool:
    return name.rpartition(".")[2] in OF_ALL or name.startswith(TABLES)


def _whole(name: str, parts: Sequence[Arrays]) -> np.ndarray:
    arrays = [part.get(name) for part in parts]
    known = [array for array in arrays if array is not None]
    if len(known) < len(parts):
        raise MisuseError(f"snapshot: {name} is missing in one of the parts")
    if not _is_of_all(name):
        agents = [
            _by_agent(array, len(part[ROWS])) for array, part in zip(known, parts, strict=True)
        ]
        together = np.concatenate(agents, axis=1)
        return together.reshape(together.shape[0] * together.shape[1], *together.shape[2:])
    if not all(np.array_equal(array, known[0]) for array in known):
        raise MisuseError(f"snapshot: {name} differs between the parts")
    return known[0]


def _cut(array: np.ndarray, total: int, rows: slice) -> np.ndarray:
    own = _by_agent(array, total)[:, rows]
    return own.reshape(own.shape[0] * own.shape[1], *own.shape[2:])


def _by_agent(array: np.ndarray, rows: int) -> np.ndarray:
    """`array` [agents, rows, ...] by seats: those of the first agent come first."""
    return array.reshape(len(array) // rows, rows, *array.shape[1:])

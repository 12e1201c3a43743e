"""What environments show as a world's observations: named columns of numbers, and pictures.

A picture is three axes of uint8 from 0 to 255 with its channels where stable-baselines3 looks for
them, in the smallest of three, or two axes of these; others where the settings say so.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from aimbot_lab.foundation.errors import ConfigurationError, reason
from aimbot_lab.foundation.world import (
    COLUMNS,
    Float32Array,
    ObservationBlock,
    OwnForm,
    StateTable,
    WorldSpec,
    columns_of,
    table_of_one_hot,
)
from aimbot_lab.worlds.gymnasium.settings import ObservationParts
from aimbot_lab.worlds.gymnasium.spaces import FARTHEST, MisfitError

MAX_COLUMNS = 100_000  # of an observation
OBSERVATION = "obs"  # the name of a whole one
ROUNDING = 1e-5  # share of a bound by which a number may lie beyond it without a word
NUMBERS = "biufO"  # kinds of arrays that are read as numbers
UNFIT = ArithmeticError, AttributeError, LookupError, TypeError, ValueError


class Entry(NamedTuple):
    """An observation, or an entry of its Dict or Tuple at any depth, which has a block."""

    name: str
    path: tuple[Any, ...]  # keys that lead to it
    space: spaces.Space[Any]
    layout: str | None  # of a picture: hwc, chw or hw
    columns: slice  # of the observation; of a picture none
    scale: tuple[float, float] | None  # bounds of a picture's shades that are not 0 and 255
    choices: tuple[tuple[int, int], ...]  # least value and number of each; of numbers none


class ObservationReader:
    """Reads what environments of `space` show, with the parts that `told` names.

    Raises ConfigurationError for what can't be used, and names its entry and the way out.
    """

    blocks: tuple[ObservationBlock, ...]
    names: tuple[str, ...]  # [D] of the columns
    low: Float32Array  # [D] -inf where there is no bound
    high: Float32Array  # [D]
    fault: str | None = None
    """How an entry came that is of another shape or type than its space says; None: all fit."""

    def __init__(self, space: spaces.Space[Any], told: ObservationParts) -> None:
        found = list(_leaves(space, OBSERVATION, (), told.drop))
        _check_parts(space, told, found)
        names: list[str] = []
        bounds = [np.zeros((2, 0), np.float32)]
        taken, entries, blocks = {COLUMNS}, [], []
        for name, path, leaf in found:
            layout, first, unique = _layout(name, leaf, told), len(names), name or "'"
            while unique in taken:
                unique += "'"
            taken.add(unique)
            if layout is None:
                names += islice(_names(leaf, name), MAX_COLUMNS + 1)
                if len(names) > MAX_COLUMNS:
                    break  # without the memory that its bounds would take
                bounds.append(_bounds(leaf))
                block = ObservationBlock(unique, "vector", (len(names) - first,))
            else:
                block = ObservationBlock(unique, "image", _last(leaf.shape, layout))
            own = OwnForm(leaf.shape or (), _choices(leaf), _scale(leaf, layout))
            comes_first = layout == "chw"
            blocks.append(replace(block, channels_first=comes_first, path=path, own=own))
            at = slice(first, len(names))
            entries.append(Entry(unique, path, leaf, layout, at, own.shades, own.choices))
        _check_size(names, blocks)
        self._entries, self.blocks, self.names = entries, tuple(blocks), tuple(names)
        low, high = np.concatenate(bounds, axis=1)
        self.low = np.where(low < -FARTHEST, np.float32(-np.inf), low)
        self.high = np.where(high > FARTHEST, np.float32(np.inf), high)
        self.states = _numbered_states(space)
        only = space if len(found) == 1 and entries[0].layout is None else None
        is_plain = isinstance(only, spaces.Box) and len(only.shape) == 1
        self.plain = (space.shape, space.dtype) if is_plain else (None, None)
        """Shape and type of observations that are the columns [D] themselves; of others None."""

    @property
    def goals(self) -> dict[str, spaces.Space[Any]]:
        """Entries in which goals may be, by name."""
        plain = [one for one in self._entries if one.layout is None and len(one.path) == 1]
        kinds = spaces.Box, spaces.MultiBinary, spaces.Discrete
        return {one.name: one.space for one in plain if isinstance(one.space, kinds)}

    def read(self, observation: Any, kind: np.dtype[Any]) -> npt.NDArray[Any]:
        """`observation` as `kind`, the world's `observation_dtype`. Raises MisfitError."""
        seen = np.zeros((), kind)
        columns = columns_of(seen)
        try:
            for entry in self._entries:
                given = observation
                for key in entry.path:
                    given = given[key]
                if given is None:
                    raise MisfitError(f"gave None as {entry.name}")
                if entry.layout is None:
                    self._read_columns(entry, given, columns)
                else:
                    seen[entry.name] = self._picture(entry, given)
        except UNFIT as error:
            raise MisfitError(f"{NO_FIT}: {reason(error)}") from error
        return seen

    @property
    def library_space(self) -> spaces.Space[Any]:
        """What stable-baselines3 is shown: the only entry, or a Dict of all, as its own space.

        Pictures have their channels first; what the library does not take is plain columns.
        """
        pairs = zip(self._entries, self.blocks, strict=True)
        found = {one.name: _library_space(one, block.shape) for one, block in pairs}
        return next(iter(found.values())) if len(found) == 1 else spaces.Dict([*found.items()])

    def library_form(self, observation: Any) -> Any:
        """`observation` as an element of `library_space`."""
        found = {}
        for entry in self._entries:
            given = observation
            for key in entry.path:
                given = given[key]
            if entry.layout is not None:
                given = np.moveaxis(self._picture(entry, given), 2, 0)
            elif not _is_known(entry.space):
                given = spaces.flatten(entry.space, given)
            found[entry.name] = given
        return next(iter(found.values())) if len(found) == 1 else found

    def _read_columns(self, entry: Entry, given: Any, columns: Float32Array) -> None:
        if entry.choices:
            _mark_choices(entry, given, columns)
            return
        flat = np.asarray(given)
        if flat.dtype.kind not in NUMBERS:
            raise MisfitError(f"{NO_FIT}: {entry.name} has no real numbers ({flat.dtype})")
        if flat.dtype != entry.space.dtype:
            kind = np.dtype(entry.space.dtype)
            cast = flat.astype(kind)
            # A number that does not fit is kept, so that it is reported as out of bounds.
            flat = flat if kind.kind in "iu" and (cast != np.trunc(flat)).any() else cast
        if flat.shape != entry.space.shape:
            self._note_shape(entry, flat.shape)
        flat = flat.ravel()
        size = entry.columns.stop - entry.columns.start
        if flat.shape != (size,):
            raise MisfitError(f"{NO_FIT}: {entry.name} has {flat.size:,} numbers, not {size:,}")
        columns[entry.columns] = flat

    def _picture(self, entry: Entry, given: Any) -> npt.NDArray[Any]:
        """[H, W, C] from 0 to 255."""
        picture, wanted = np.asarray(given), entry.space.shape
        assert wanted is not None
        if picture.shape != wanted:
            self._note_shape(entry, picture.shape)
            if [side for side in picture.shape if side > 1] != [
                side for side in wanted if side > 1
            ]:
                raise MisfitError(self.fault or NO_FIT)
            picture = picture.reshape(wanted)
        if picture.dtype != entry.space.dtype and self.fault is None:
            said = entry.space.dtype
            self.fault = f"gave {entry.name} as {picture.dtype}; its space says {said}"
        if entry.scale is not None:
            low, high = entry.scale
            picture = (picture.astype(np.float64) - low) * (255.0 / (high - low))
        if picture.dtype != np.uint8:
            if not np.isfinite(picture).all():
                raise MisfitError(f"gave NaN or infinity in {entry.name}")
            picture = np.rint(np.clip(picture, 0, 255)).astype(np.uint8)
        if entry.layout == "hw":
            return picture[:, :, None]
        return np.moveaxis(picture, 0, 2) if entry.layout == "chw" else picture

    def _note_shape(self, entry: Entry, shape: tuple[int, ...]) -> None:
        if self.fault is None:
            said = entry.space.shape
            self.fault = f"gave {entry.name} with the shape {shape}; its space says {said}"


def _is_known(space: spaces.Space[Any]) -> bool:
    """Whether stable-baselines3 takes `space` as it is."""
    match space:
        case spaces.Discrete():
            return int(space.start) == 0
        case spaces.MultiDiscrete():
            return len(space.shape) == 1 and not space.start.any()
    return space.shape != ()


def _library_space(entry: Entry, shape: tuple[int, ...]) -> spaces.Space[Any]:
    space = entry.space
    if entry.layout is not None:
        height, width, channels = shape
        return spaces.Box(0, 255, (channels, height, width), np.uint8)
    if not _is_known(space):
        return spaces.flatten_space(space)
    if isinstance(space, spaces.Box) and space.dtype == np.uint8:  # which it takes for a picture
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32))
    return space


def _mark_choices(entry: Entry, given: Any, columns: Float32Array) -> None:
    """Write a 1 for each choice of `given`. Raises MisfitError for one that there is not."""
    shown, first = np.asarray(given).ravel().tolist(), entry.columns.start
    if len(shown) != len(entry.choices):
        raise MisfitError(
            f"{NO_FIT}: {entry.name} has {len(shown):,} choices, not {len(entry.choices):,}"
        )
    for place, (least, count) in enumerate(entry.choices):
        if shown[place] - least not in range(count):
            name = entry.name if len(shown) == 1 else f"{entry.name}_{place}"
            ends = f"{least} to {least + count - 1}"
            raise MisfitError(f"gave {name} as {shown[place]}; its space says {ends}")
        columns[first + int(shown[place] - least)] = 1
        first += count


NO_FIT = "gave an observation that does not fit its observation_space"


def _leaves(
    space: spaces.Space[Any], name: str, path: tuple[Any, ...], drop: tuple[str, ...]
) -> Iterator[tuple[str, tuple[Any, ...], spaces.Space[Any]]]:
    """Name, path and space of every entry, without those to `drop`; names are paths, too."""
    if path and name in drop:
        return
    match space:
        case spaces.Dict():
            for key, inner in space.spaces.items():
                full = f"{name}_{key}" if path else str(key)
                yield from _leaves(inner, full, (*path, key), drop)
        case spaces.Tuple():
            for index, inner in enumerate(space.spaces):
                yield from _leaves(inner, f"{name}_{index}", (*path, index), drop)
        case _:
            yield name, path, space


def entry_layouts(space: spaces.Space[Any], told: ObservationParts) -> dict[str, str | None]:
    """The layout of each entry that is a picture (hwc, chw or hw), by name; else None."""
    found = _leaves(space, OBSERVATION, (), told.drop)
    return {name: _layout(name, leaf, told) for name, _, leaf in found}


def _check_parts(space: spaces.Space[Any], told: ObservationParts, found: list[Any]) -> None:
    """Raise ConfigurationError for entries that `told` names and that there are not."""
    every = [name for name, _, _ in _leaves(space, OBSERVATION, (), ())]
    known = {
        "drop": {
            name
            for name in told.drop
            if any(one == name or one.startswith(f"{name}_") for one in every)
        },
        "flatten": {name for name, _, _ in found},
        "pictures": {name for name, _, _ in found},
    }
    for key, names in known.items():
        for name in getattr(told, key):
            if name not in names or (key == "drop" and name == OBSERVATION and len(every) == 1):
                there = ", ".join(every)
                raise ConfigurationError(
                    f"env.observation.{key}: no entry {name} (there are {there})"
                )
    if both := set(told.flatten).intersection(told.pictures):
        raise ConfigurationError(f"env.observation.flatten: {min(both)} is one of pictures, too")
    if not found and told.drop:
        raise ConfigurationError("env.observation.drop: leaves nothing to be observed")


def _layout(name: str, space: spaces.Space[Any], told: ObservationParts) -> str | None:
    """How the axes of a picture are ordered; None: these are plain numbers."""
    if name in told.flatten:
        return None
    shape = space.shape or ()
    if (said := told.pictures.get(name)) is not None:
        where = f"env.observation.pictures.{name}"
        can_be = isinstance(space, spaces.Box | spaces.MultiBinary) and 0 not in shape
        if not can_be or len(shape) != len(said):
            raise ConfigurationError(
                f"{where}: {said} needs {len(said)} axes of numbers (its space is {space})"
            )
        if isinstance(space, spaces.Box) and not space.is_bounded():
            raise ConfigurationError(
                f"{where}: needs bounds, which are divided into 256 shades: give "
                "it some by gymnasium.wrappers.RescaleObservation or TransformObservation, or use "
                f"env.observation: {{flatten: [{name}]}}"
            )
        return said
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return None
    if len(shape) < 2 or 0 in shape:
        return None
    if (space.low != 0).any() or (space.high != 255).any():
        return None
    smallest = int(np.argmin(shape))
    if len(shape) == 2:
        return "hw"
    if len(shape) == 3 and smallest != 1:
        return "chw" if smallest == 0 else "hwc"
    way = f"env.observation: {{pictures: {{{name}: hwc}}}} (or chw), or "
    raise ConfigurationError(
        f"env.id: {name} has the shape {shape} in uint8, which is not plainly a picture: say "
        f"{way if len(shape) == 3 else ''}env.observation: {{flatten: [{name}]}} for plain numbers"
    )


def _last(shape: tuple[int, ...] | None, layout: str) -> tuple[int, ...]:
    """`shape` with its channels last."""
    assert shape is not None
    sides = dict(zip(layout, shape, strict=True))
    return sides["h"], sides["w"], sides.get("c", 1)


def _scale(space: spaces.Space[Any], layout: str | None) -> tuple[float, float] | None:
    if layout is None:
        return None
    low, high = (0.0, 1.0) if isinstance(space, spaces.MultiBinary) else _ends(space)
    return None if (low, high) == (0.0, 255.0) else (low, high)


def _choices(space: spaces.Space[Any]) -> tuple[tuple[int, int], ...]:
    """The least value and the number of each choice; () of a space of numbers."""
    match space:
        case spaces.Discrete():
            return ((int(space.start), int(space.n)),)
        case spaces.MultiDiscrete():
            least, counts = space.start.ravel().tolist(), space.nvec.ravel().tolist()
            return tuple(zip(least, counts, strict=True))
    return ()


def _ends(space: spaces.Space[Any]) -> tuple[float, float]:
    assert isinstance(space, spaces.Box)
    low, high = float(space.low.min()), float(space.high.max())
    return low, max(high, low + 1e-6)


def _bounds(space: spaces.Space[Any]) -> Float32Array:
    """[2, columns] lower and upper."""
    flat = spaces.flatten_space(space)
    assert isinstance(flat, spaces.Box)
    with np.errstate(over="ignore"):
        return np.stack([flat.low.ravel(), flat.high.ravel()]).astype(np.float32)


def _check_size(names: list[str], blocks: list[ObservationBlock]) -> None:
    if len(names) > MAX_COLUMNS:
        raise ConfigurationError(
            f"env.id: an observation of more than {MAX_COLUMNS:,} numbers beside pictures is too "
            "large: make it smaller by a wrapper, or leave entries out by env.observation: "
            "{drop: [...]}"
        )
    if not names and all(block.kind != "image" for block in blocks):
        raise ConfigurationError(
            "env.id: an observation has no numbers, so nothing could be learned"
        )


def _names(space: spaces.Space[Any], name: str) -> Iterator[str]:
    match space:
        case spaces.Discrete() | spaces.MultiDiscrete():
            for place, (least, count) in enumerate(_choices(space)):
                which = name if isinstance(space, spaces.Discrete) else f"{name}_{place}"
                yield from (f"{which}_is_{least + value}" for value in range(count))
        case spaces.Box() | spaces.MultiBinary():
            yield from (f"{name}_{index}" for index in range(int(spaces.flatdim(space))))
        case _:
            way = (
                ""
                if name == OBSERVATION
                else f": leave it out by env.observation: {{drop: [{name}]}}"
            )
            entry = "" if name == OBSERVATION else f" in the entry {name}"
            raise ConfigurationError(
                f"env.id: observations of {type(space).__name__}{entry} can't be used; allowed are "
                f"Box, Discrete, MultiDiscrete, MultiBinary, and Dict and Tuple of these{way}"
            )


def _numbered_states(space: spaces.Space[Any]) -> StateTable | None:
    """A state for each observation, where there is a number of these; else None."""
    return table_of_one_hot(int(space.n)) if isinstance(space, spaces.Discrete) else None


def column_ends(spec: WorldSpec, rows: int, *, bounded: bool) -> tuple[Float32Array, Float32Array]:
    """Least and largest value [B, D] of the columns of `rows` rows; NaN and infinity never fit.

    The declared bounds and a little beyond, so that rounding does not count; or any finite number.
    """
    low, high = spec.observation_low, spec.observation_high
    below, above = (
        np.float32(ROUNDING if bounded else np.inf) * (1 + np.abs(bound)) for bound in (low, high)
    )
    last = np.finfo(np.float32).max
    return (
        np.tile(np.maximum(low - below, -last), (rows, 1)),
        np.tile(np.minimum(high + above, last), (rows, 1)),
    )

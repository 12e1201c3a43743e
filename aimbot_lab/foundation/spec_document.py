"""The shape of a world as plain JSON values, to be kept beside what was trained in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf, prod
from types import MappingProxyType
from typing import Annotated, Any, NotRequired

import numpy as np
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from aimbot_lab.foundation.world import (
    BlockKind,
    EnvironmentActions,
    Float32Array,
    ObservationBlock,
    OwnForm,
    SpaceKind,
    StateTable,
    WorldSpec,
)

TUPLES = ("branches", "reward_terms", "parameters", "action_names", "episode_columns")
PLAIN = (
    *("continuous", "continuous_limit", "turn_per_unit", "decision_seconds", "time_unit"),
    *("max_steps", "agents", "has_draws", "time_column"),
)
BOUNDS = ("observation_low", "observation_high")
MAPPINGS = ("targets", "difficulties")
MAX_COLUMNS = 2**17  # of an observation
MAX_NUMBERS = 2**26  # of one with its pictures
MAX_CHOICES = 2**16  # of a branch, and branches and columns of an action
MAX_NAMES = 2**10  # of targets, terms and the like
_DIMENSIONS: Mapping[str, int] = MappingProxyType({"vector": 1, "rays": 2, "units": 2, "image": 3})

_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
_Key = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Names = Annotated[tuple[_Name, ...], Field(max_length=MAX_NAMES)]
_Count = Annotated[int, Field(ge=0, le=MAX_COLUMNS)]
_Index = Annotated[int, Field(ge=-(2**62), le=2**62)]
_Whole = Annotated[int, Field(ge=-(2**63), lt=2**64)]  # what NumPy's whole numbers hold
_Number = Annotated[float, Field(ge=-1e308, le=1e308)]
_Side = Annotated[int, Field(ge=1, le=MAX_COLUMNS)]
_Run = tuple[_Number | None, _Side]
_Shape = Annotated[tuple[_Count, ...], Field(max_length=3)]  # 0: an entry without numbers


_Ends = Annotated[tuple[_Number | _Whole | None, ...], Field(max_length=MAX_CHOICES)]


class _EnvironmentActions(TypedDict):
    kind: NotRequired[SpaceKind]  # files of earlier versions have none
    shape: Annotated[tuple[_Count, ...], Field(max_length=32)]
    dtype: Annotated[str, Field(max_length=16)]
    starts: Annotated[tuple[_Index, ...], Field(max_length=MAX_CHOICES)]
    low: _Ends
    high: _Ends
    parts: NotRequired[Annotated[tuple["_EnvironmentActions", ...], Field(max_length=MAX_NAMES)]]
    keys: NotRequired[Annotated[tuple[_Key | _Index, ...], Field(max_length=MAX_NAMES)]]


class _OwnForm(TypedDict):
    shape: Annotated[tuple[_Count, ...], Field(max_length=32)]
    choices: Annotated[tuple[tuple[_Index, _Side], ...], Field(max_length=MAX_COLUMNS)]
    shades: tuple[_Number, _Number] | None


class _States(TypedDict):
    size: Annotated[int, Field(ge=1, le=2**24)]
    columns: tuple[_Index, ...]
    place_weights: tuple[_Index, ...]
    rest_weights: tuple[_Index, ...]
    first_states: tuple[_Index, ...]


class _Document(TypedDict):
    continuous: Annotated[int, Field(ge=0, le=MAX_CHOICES)]
    continuous_limit: _Number
    turn_per_unit: _Number | None
    decision_seconds: _Number
    time_unit: _Name
    max_steps: Annotated[int, Field(ge=1, le=2**31)] | None
    agents: Annotated[int, Field(ge=1, le=2**10)]
    has_draws: bool
    time_column: _Name | None
    branches: Annotated[
        tuple[Annotated[int, Field(ge=1, le=MAX_CHOICES)], ...], Field(max_length=MAX_CHOICES)
    ]
    reward_terms: _Names
    parameters: _Names
    action_names: Annotated[tuple[_Name, ...], Field(max_length=MAX_CHOICES)]
    episode_columns: _Names
    targets: Annotated[Mapping[_Name, _Index], Field(max_length=MAX_NAMES)]
    difficulties: Annotated[
        Mapping[_Name, Annotated[int, Field(ge=0, le=100)]], Field(max_length=MAX_NAMES)
    ]
    observation_low: Annotated[tuple[_Run, ...], Field(max_length=MAX_COLUMNS)]
    observation_high: Annotated[tuple[_Run, ...], Field(max_length=MAX_COLUMNS)]
    blocks: Annotated[
        tuple[tuple[_Name, BlockKind, _Shape] | tuple[_Name, BlockKind, _Shape, _Name], ...],
        Field(min_length=1, max_length=MAX_NAMES),
    ]
    paths: NotRequired[
        Annotated[
            tuple[Annotated[tuple[_Key | _Index, ...], Field(max_length=100)], ...],
            Field(max_length=MAX_NAMES),
        ]
    ]
    channels_first: NotRequired[_Names]
    own: NotRequired[Annotated[tuple[_OwnForm | None, ...], Field(max_length=MAX_NAMES)]]
    observation_names: NotRequired[Annotated[tuple[_Name, ...], Field(max_length=MAX_COLUMNS)]]
    continuous_bounds: Annotated[
        tuple[tuple[_Number | None, _Number | None], ...], Field(max_length=MAX_CHOICES)
    ]
    abilities: _Names
    result_columns: _Names | None
    has_wins: NotRequired[bool]
    environment_actions: NotRequired[_EnvironmentActions]
    states: NotRequired[_States]


_FORM = TypeAdapter(_Document)


def spec_document(spec: WorldSpec) -> dict[str, Any]:
    """`spec` as JSON values, without units and measures; infinite bounds are null.

    Bounds are [bound, columns] for columns in a row that have the same. Names of observations are
    left out where they are BLOCK_0, BLOCK_1 and so on.
    """
    document: dict[str, Any] = {name: getattr(spec, name) for name in PLAIN}
    document |= {name: list(getattr(spec, name)) for name in TUPLES}
    document |= {name: dict(getattr(spec, name)) for name in MAPPINGS}
    document |= {name: _runs(getattr(spec, name)) for name in BOUNDS}
    document["blocks"] = [
        [one.name, one.kind, list(one.shape), *([one.sensor] if one.sensor else [])]
        for one in spec.observation_blocks
    ]
    if any(one.path for one in spec.observation_blocks):
        document["paths"] = [list(one.path) for one in spec.observation_blocks]
    if first := [one.name for one in spec.pictures if one.channels_first]:
        document["channels_first"] = first
    if any(one.own for one in spec.observation_blocks):
        document["own"] = [one.own and one.own._asdict() for one in spec.observation_blocks]
    if spec.observation_names != tuple(_usual_names(spec.observation_blocks)):
        document["observation_names"] = list(spec.observation_names)
    document["continuous_bounds"] = [[*map(_finite, pair)] for pair in spec.continuous_bounds]
    document["abilities"] = sorted(spec.abilities)
    kept = spec.result_columns
    document["result_columns"] = None if kept is None else list(kept)
    if not spec.has_wins:
        document["has_wins"] = False
    if spec.environment_actions is not None:
        document["environment_actions"] = _taken_document(spec.environment_actions)
    if spec.states is not None:
        arrays = spec.states._asdict()
        size = arrays.pop("size")
        document["states"] = {"size": size, **{key: one.tolist() for key, one in arrays.items()}}
    return document


def spec_from(document: Any) -> WorldSpec:
    """The spec that `document` describes; what its parts say of each other is not checked.

    Raises ValueError where it is not the document of a spec, however large it would have to be.
    """
    form: dict[str, Any] = {**_FORM.validate_python(document)}
    blocks = tuple(ObservationBlock(*block) for block in form["blocks"])
    first, paths = form.get("channels_first", ()), form.get("paths", ((),) * len(blocks))
    own = form.get("own", (None,) * len(blocks))
    if not len(paths) == len(own) == len(blocks):
        raise ValueError("another number of paths or forms than of blocks")
    blocks = tuple(
        replace(block, path=path, channels_first=block.name in first, own=of and OwnForm(**of))
        for block, path, of in zip(blocks, paths, own, strict=True)
    )
    if not all(map(_fits, blocks)):
        raise ValueError("a block of another size than its own form")
    if not all(
        len(block.shape) == _DIMENSIONS[block.kind] and (block.kind == "vector" or all(block.shape))
        for block in blocks
    ):
        raise ValueError("a block of another shape than its kind has")
    width = sum(block.columns for block in blocks)
    if width > MAX_COLUMNS or sum(prod(block.shape) for block in blocks) > MAX_NUMBERS:
        raise ValueError("too many columns")
    names = form.get("observation_names")
    bounds = [
        _spread(form[name], width, infinite)
        for name, infinite in zip(BOUNDS, (-np.inf, np.inf), strict=True)
    ]
    given, states = form.get("environment_actions"), form.get("states")
    taken = None if given is None else _taken(given)
    if states is not None:
        arrays = {key: np.array(states[key], np.int64) for key in StateTable._fields[1:]}
        states = StateTable(size=states["size"], **arrays)
    fields: dict[str, Any] = {name: form[name] for name in (*PLAIN, *TUPLES, *MAPPINGS)}
    return WorldSpec(
        **fields,
        blocks=blocks,
        observation_names=tuple(_usual_names(blocks)) if names is None else names,
        observation_low=bounds[0],
        observation_high=bounds[1],
        continuous_bounds=tuple(
            (-np.inf if low is None else low, np.inf if high is None else high)
            for low, high in form["continuous_bounds"]
        )
        or (() if taken is None else taken.bounds),  # which earlier versions left out
        abilities=frozenset(form["abilities"]),
        result_columns=form["result_columns"],
        has_wins=form.get("has_wins", True),
        environment_actions=taken,
        states=states,
    )


def _fits(block: ObservationBlock) -> bool:
    """Whether a block has as many numbers as the own form that it says it has."""
    if block.own is None:
        return True
    choices, size = block.own.choices, prod(block.own.shape)
    sizes = sum(count for _, count in choices) if choices else size
    return prod(block.shape) == sizes and len(choices) in (0, size)


def _taken_document(taken: EnvironmentActions) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": taken.kind,
        "shape": list(taken.shape),
        "dtype": taken.dtype,
        "starts": list(taken.starts),
        "low": [bound if np.isfinite(bound) else None for bound in taken.low],
        "high": [bound if np.isfinite(bound) else None for bound in taken.high],
    }
    if taken.kind in ("dict", "tuple"):
        document["parts"] = [_taken_document(part) for part in taken.parts]
        document["keys"] = list(taken.keys)
    return document


def _taken(form: Mapping[str, Any]) -> EnvironmentActions:
    usual = "box" if form["low"] else "multi_discrete" if form["shape"] else "discrete"
    kind = form.get("kind", usual)
    if kind in ("dict", "tuple"):
        parts, keys = [_taken(part) for part in form.get("parts", ())], form.get("keys", ())
        if len(keys) != (len(parts) if kind == "dict" else 0):
            raise ValueError("actions of another number of parts than their keys")
        return EnvironmentActions.joined(parts, keys if kind == "dict" else None)
    try:
        dtype = np.dtype(form["dtype"])
    except TypeError:
        raise ValueError("actions of an unknown kind") from None
    if dtype.kind not in "biuf":
        raise ValueError("actions of an unknown kind")
    number = float if dtype.kind == "f" else int
    low, high = (
        tuple(infinite if bound is None else number(bound) for bound in form[name])
        for name, infinite in (("low", -inf), ("high", inf))
    )
    taken = EnvironmentActions(kind, form["shape"], str(dtype), form["starts"], low, high)
    count = len(low)
    if prod(taken.shape) != len(taken.starts) + count:
        raise ValueError("actions of another shape than their columns")
    try:
        if len(high) != count or not taken.flat(np.zeros((1, len(taken.starts) + count))).size:
            raise ValueError("actions without bounds")
    except OverflowError:
        raise ValueError("actions with bounds that their kind does not hold") from None
    return taken


def _usual_names(blocks: tuple[ObservationBlock, ...]) -> Iterator[str]:
    return (f"{one.name}_{column}" for one in blocks for column in range(one.columns))


def _finite(bound: float) -> float | None:
    return float(bound) if np.isfinite(bound) else None


def _runs(bounds: Float32Array) -> list[list[Any]]:
    return [[_finite(bound), len([*same])] for bound, same in groupby(bounds.tolist())]


def _spread(runs: Sequence[tuple[float | None, int]], width: int, infinite: float) -> Float32Array:
    counts = [count for _, count in runs]
    if sum(counts) != width:
        raise ValueError("bounds of another number of columns")
    values = [infinite if bound is None else bound for bound, _ in runs]
    return np.repeat(np.array(values, np.float32), counts)

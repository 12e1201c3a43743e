"""The shape of a world as plain JSON values, to be kept beside what was trained in it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from aimbot_lab.foundation.environment_actions import EnvironmentActions
from aimbot_lab.foundation.world import Float32Array, ObservationBlock, StateTable, WorldSpec

TUPLES = ("branches", "reward_terms", "parameters", "action_names", "episode_columns")
PLAIN = (
    *("continuous", "continuous_limit", "turn_per_unit", "decision_seconds", "time_unit"),
    *("max_steps", "agents", "has_draws", "time_column"),
)
BOUNDS = ("observation_low", "observation_high")
MAX_COLUMNS = 2**20  # that a document may describe


def spec_document(spec: WorldSpec) -> dict[str, Any]:
    """`spec` as JSON values, without units and measures; infinite bounds are null.

    Bounds are [bound, columns] for columns in a row that have the same. Names of observations are
    left out where they are BLOCK_0, BLOCK_1 and so on.
    """
    document: dict[str, Any] = {name: getattr(spec, name) for name in PLAIN}
    document |= {name: list(getattr(spec, name)) for name in TUPLES}
    document |= {name: dict(getattr(spec, name)) for name in ("targets", "difficulties")}
    document |= {name: _runs(getattr(spec, name)) for name in BOUNDS}
    document["blocks"] = [[one.name, one.kind, list(one.shape)] for one in spec.observation_blocks]
    if spec.observation_names != tuple(_usual_names(spec.observation_blocks)):
        document["observation_names"] = list(spec.observation_names)
    document["continuous_bounds"] = [[*map(_finite, pair)] for pair in spec.continuous_bounds]
    document["abilities"] = sorted(spec.abilities)
    kept = spec.result_columns
    document["result_columns"] = None if kept is None else list(kept)
    if spec.environment_actions is not None:
        document["environment_actions"] = asdict(spec.environment_actions)
    if spec.states is not None:
        arrays = spec.states._asdict()
        size = arrays.pop("size")
        document["states"] = {"size": size, **{key: one.tolist() for key, one in arrays.items()}}
    return document


def spec_from(document: Any) -> WorldSpec:
    """The spec that `document` describes; what its parts say of each other is not checked.

    Raises ValueError, TypeError or KeyError where it is no document of a spec.
    """
    fields: dict[str, Any] = {name: document[name] for name in PLAIN}
    fields |= {name: tuple(document[name]) for name in TUPLES}
    fields |= {name: _counts(document[name]) for name in ("targets", "difficulties")}
    fields["branches"] = tuple(map(int, fields["branches"]))
    for name in TUPLES[1:]:
        fields[name] = tuple(map(str, fields[name]))
    blocks = tuple(
        ObservationBlock(str(name), kind, tuple(map(int, shape)))
        for name, kind, shape in document["blocks"]
    )
    if not all(block.kind in ("vector", "rays", "units", "image") for block in blocks):
        raise ValueError("a block of an unknown kind")
    if not 0 < sum(block.columns for block in blocks) <= MAX_COLUMNS:
        raise ValueError("too many columns")
    names = document.get("observation_names")
    fields["observation_names"] = tuple(map(str, _usual_names(blocks) if names is None else names))
    for name, infinite in zip(BOUNDS, (-np.inf, np.inf), strict=True):
        fields[name] = _spread(document[name], infinite)
    fields["continuous_bounds"] = tuple(
        (_bound(low, -np.inf), _bound(high, np.inf)) for low, high in document["continuous_bounds"]
    )
    fields["abilities"] = frozenset(map(str, document["abilities"]))
    kept = document["result_columns"]
    fields["result_columns"] = None if kept is None else tuple(map(str, kept))
    if (taken := document.get("environment_actions")) is not None:
        fields["environment_actions"] = _taken(taken)
    if (states := document.get("states")) is not None:
        arrays = {key: np.array(states[key], np.int64) for key in StateTable._fields[1:]}
        fields["states"] = StateTable(size=int(states["size"]), **arrays)
    return WorldSpec(blocks=blocks, **fields)


def _taken(document: Mapping[str, Any]) -> EnvironmentActions:
    kind = np.dtype(str(document["dtype"]))
    if kind.kind not in "biuf":
        raise ValueError("actions of an unknown kind")
    number = float if kind.kind == "f" else int
    taken = EnvironmentActions(
        shape=tuple(map(int, document["shape"])),
        dtype=str(kind),
        starts=tuple(map(int, document["starts"])),
        low=tuple(map(number, document["low"])),
        high=tuple(map(number, document["high"])),
    )
    count = len(taken.low)
    if min(taken.shape, default=0) < 0 or prod(taken.shape) != len(taken.starts) + count:
        raise ValueError("actions of another shape than their columns")
    if len(taken.high) != count or not np.isfinite(taken.scaled(np.zeros((1, count)))).all():
        raise ValueError("actions without bounds")
    return taken


def _usual_names(blocks: tuple[ObservationBlock, ...]) -> Iterator[str]:
    return (f"{one.name}_{column}" for one in blocks for column in range(one.columns))


def _counts(given: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in given.items()}


def _finite(bound: float) -> float | None:
    return float(bound) if np.isfinite(bound) else None


def _bound(given: Any, infinite: float) -> float:
    return infinite if given is None else float(given)


def _runs(bounds: Float32Array) -> list[list[Any]]:
    return [[_finite(bound), len([*same])] for bound, same in groupby(bounds.tolist())]


def _spread(runs: Any, infinite: float) -> Float32Array:
    values = [_bound(bound, infinite) for bound, _ in runs]
    counts = [int(count) for _, count in runs]
    if not 0 < sum(counts) <= MAX_COLUMNS or min(counts) < 1:
        raise ValueError("too many columns")
    return np.repeat(np.array(values, np.float32), counts)

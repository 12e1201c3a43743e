"""What is wrong with a world's spec, so that a package's world is refused before it is made."""

import re
from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from aimbot_lab.foundation import metric_names
from aimbot_lab.foundation.unit_block import unit_faults
from aimbot_lab.foundation.world import ABILITIES, COLUMNS, WorldSpec

TRACKED_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""What a name must be that becomes a metric's and stands in result lines."""
TAKEN_COLUMNS = frozenset(
    name.rpartition("/")[2]
    for name in (
        metric_names.EPISODE_LENGTH,
        metric_names.EPISODE_RETURN,
        metric_names.EPISODES_ENDED,
        metric_names.DRAW_RATE,
        metric_names.EPISODES_UNPARSED,
        metric_names.EPISODES_DROPPED,
    )
)
"""What no column of a world's own may be called: metrics of all worlds have these names."""


def spec_faults(spec: object) -> Iterator[str]:
    """What does not fit together in `spec`, each in a line; nothing where all does."""
    if not isinstance(spec, WorldSpec):
        yield "it must be a WorldSpec"
        return
    yield from _observation_faults(spec)
    yield from _action_faults(spec)
    yield from _episode_faults(spec)
    yield from _states_faults(spec)
    if not spec.agents >= 1:
        yield f"agents must be at least 1 (got {spec.agents})"
    if not spec.decision_seconds > 0:
        yield f"decision_seconds must be above 0 (got {spec.decision_seconds})"
    yield from (f"no ability is called {name!r}" for name in spec.abilities - set(ABILITIES))


def _observation_faults(spec: WorldSpec) -> Iterator[str]:
    width = len(spec.observation_names)
    least = 0 if spec.pictures else 1
    yield from _names_faults("observation_names", spec.observation_names, least=least)
    low, high = np.asarray(spec.observation_low), np.asarray(spec.observation_high)
    if not low.shape == high.shape == (width,):
        what = f"have the shapes {low.shape} and {high.shape}; both must be ({width},)"
        yield f"observation_low and observation_high {what}"
    elif not (low <= high).all():
        name = spec.observation_names[int(np.argmax(~(low <= high)))]
        yield f"the lower bound of observation {name} exceeds the upper"
    columns = sum(block.columns for block in spec.observation_blocks)
    if columns != width:
        yield f"blocks hold {columns} columns; an observation has {width}"
    names = [block.name for block in spec.observation_blocks]
    yield from _names_faults("blocks", [*names, COLUMNS] if spec.pictures else names)
    for one in spec.pictures:
        if len(one.shape) != 3 or min(one.shape) < 1:
            yield f"picture {one.name} must have height, width and channels (got {one.shape})"
    kinds = [getattr(block, "kind", "") for block in spec.units]
    yield from _names_faults("units", kinds)
    for block in spec.units:
        yield from unit_faults(block, width)


def _states_faults(spec: WorldSpec) -> Iterator[str]:
    states = spec.states
    if states is None:
        return
    width = len(spec.observation_names)
    if not ((states.columns >= 0) & (states.columns < width)).all():
        yield f"states: every column must be one of the observation's, 0 to {width - 1}"
    shapes = {one.shape for one in (states.columns, states.place_weights, states.rest_weights)}
    if len(shapes) != 1:
        yield "states: columns, place_weights and rest_weights must have the same shape"
    if not (states.size >= 1 and (states.first_states < states.size).all()):
        yield "states: every first state must be below their number, which is at least 1"


def _action_faults(spec: WorldSpec) -> Iterator[str]:
    if not all(size >= 1 for size in spec.branches):
        yield f"every branch must have at least one choice (got {spec.branches})"
    width = len(spec.branches) + spec.continuous
    if width == 0:
        yield "there must be a branch or a continuous column"
    taken = spec.environment_actions
    if taken is not None and (len(taken.starts), len(taken.low), len(taken.high)) != (
        *(len(spec.branches), spec.continuous, spec.continuous),
    ):
        yield "environment_actions must have a start for each branch, a low and a high for the rest"
    if spec.action_names and len(spec.action_names) != width:
        yield f"action_names must have {width} names (got {len(spec.action_names)})"

    yield from _bounds_faults(spec)


def _bounds_faults(spec: WorldSpec) -> Iterator[str]:
    """What is wrong with the bounds of continuous columns."""
    bounds = spec.continuous_bounds
    if spec.continuous and not 0 < spec.continuous_limit < inf:
        yield f"continuous_limit must be a finite number above 0 (got {spec.continuous_limit})"
    if bounds and len(bounds) != spec.continuous:
        yield f"continuous_bounds must have {spec.continuous} pairs (got {len(bounds)})"
    for number, (low, high) in enumerate(bounds):
        if not (low < high and low < inf and high > -inf):
            yield f"continuous_bounds: pair {number} must rise (got {low:g} and {high:g})"


def _episode_faults(spec: WorldSpec) -> Iterator[str]:
    if spec.targets.keys() != spec.difficulties.keys():
        yield "targets and difficulties must have the same keys"
    yield from _names_faults("targets", tuple(spec.targets), least=1, tracked=True)
    yield from _names_faults("reward_terms", spec.reward_terms, least=1, tracked=True)
    yield from _names_faults("episode_columns", spec.episode_columns, tracked=True)
    if spec.time_column is not None and spec.time_column not in spec.episode_columns:
        yield f"time_column {spec.time_column!r} must be one of episode_columns"
    for name in sorted(TAKEN_COLUMNS.intersection(spec.episode_columns)):
        yield f"episode_columns: every world has {name} already"
    if "seconds" in (spec.result_columns or ()):
        yield "result_columns: every line has seconds already"
    asked = [("result_columns", name) for name in spec.result_columns or ()]
    for measure in spec.measures:
        columns = (measure.column, measure.over, measure.only)
        asked += [(f"measures: {measure.name}", name) for name in columns if name]
    for key, name in asked:
        if name not in spec.episode_columns:
            yield f"{key}: there is no column {name!r} among episode_columns"
    yield from _names_faults("measures", [measure.name for measure in spec.measures], tracked=True)


def _names_faults(
    key: str, names: Sequence[str], *, least: int = 0, tracked: bool = False
) -> Iterator[str]:
    if len(names) < least:
        yield f"{key} must have at least {least}"
    if len(set(names)) != len(names):
        yield f"{key} must differ"
    for name in names if tracked else ():
        if not TRACKED_NAME.fullmatch(name):
            yield f"{key}: {name!r} must be of letters, digits, and the signs _ - ."

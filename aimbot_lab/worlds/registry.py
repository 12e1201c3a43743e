"""Which worlds exist, those of this package and those that others bring, and checks of their specs.

A package brings a world by an entry point of the group `aimbot_lab.worlds`, whose name is the
world's and whose object is a `foundation.world_type.WorldType`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import ValidationError

from aimbot_lab.foundation import metric_names
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.registry import Registry, SettingsByName
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import ABILITIES, COLUMNS, BatchWorld, WorldSpec, unit_faults
from aimbot_lab.foundation.world_type import AskedType, KeptFiles, WorldSettings, WorldType
from aimbot_lab.worlds.arena.world_type import ARENA
from aimbot_lab.worlds.duel.world_type import DUEL
from aimbot_lab.worlds.gorge.world_type import GORGE
from aimbot_lab.worlds.gymnasium.world_type import GYMNASIUM
from aimbot_lab.worlds.pettingzoo.world_type import PETTINGZOO
from aimbot_lab.worlds.unity.world_type import UNITY

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


DEFAULT = ARENA.name
HASH_DIGITS = 6  # of a content's hash that a person is shown
WORLDS: Registry[WorldType] = Registry(
    group="aimbot_lab.worlds",
    noun="world",
    key="world",
    kind=WorldType,
    own=MappingProxyType(
        {one.name: one for one in (ARENA, DUEL, GORGE, GYMNASIUM, PETTINGZOO, UNITY)}
    ),
)
_BY_NAME = SettingsByName(WORLDS, default=DEFAULT)
AnyWorld = Annotated[WorldSettings, _BY_NAME]
"""The settings of any world, as pydantic validates them; `world` says which."""


def world_types() -> Mapping[str, WorldType]:
    """Every world by its name, all loaded; those of broken packages are left out."""
    return WORLDS.loadable()[0]


def type_of(settings: WorldSettings) -> WorldType:
    """The kind of world that `settings` describe."""
    return WORLDS[settings.world]


def make_world(
    settings: WorldSettings, num_envs: int | None = None, *, one_thread: bool = False
) -> BatchWorld:
    """The world that `settings` describe, not yet reset; with another number of rows if given.

    `one_thread` has no effect on worlds that have but one. Raises ConfigurationError for a number
    of rows that the world does not take.
    """
    chosen: Any = settings if num_envs is None else with_rows(settings, num_envs)
    if one_thread and hasattr(chosen, "threads"):
        chosen = replace(chosen, threads=1)
    with WORLDS.blamed(settings.world, "can't be made:"):
        return type_of(settings).make(chosen)


def rows_for(settings: WorldSettings, episodes: int) -> int:
    """Rows in which `episodes` are judged: one for each, or what `settings` say of it."""
    most: int | None = getattr(settings, "num_eval_envs", None)
    return episodes if most is None else min(most, episodes)


def with_rows(settings: WorldSettings, num_envs: int) -> WorldSettings:
    """`settings` with `num_envs` rows. Raises ConfigurationError where the world takes fewer."""
    chosen: Any = settings
    try:
        changed: WorldSettings = replace(chosen, num_envs=num_envs)
    except ValidationError as error:
        limits = error.errors()[0].get("ctx", {})
        most = f" takes at most {limits['le']:,}" if "le" in limits else " takes fewer"
        raise ConfigurationError(
            f"{num_envs:,} rows (episodes or agents at once): world {settings.world}{most}"
        ) from error
    return changed


def spec_of(settings: WorldSettings) -> WorldSpec:
    """The shape of the world that `settings` describe.

    Raises ConfigurationError, in a line for each fault, where a package's is invalid.
    """
    with WORLDS.blamed(settings.world, "has no spec:"):
        spec = type_of(settings).spec(settings)
    if settings.world not in WORLDS.own:
        where = f"env.world: the spec of {WORLDS.shown(settings.world)}"
        faults = [f"{where}: {fault}" for fault in spec_faults(spec)]
        if faults:
            raise ConfigurationError(*faults)
    return spec


def code_of(settings: WorldSettings) -> NamedCode | None:
    """The code that `settings` name, which making their world runs; None: they name none."""
    return type_of(settings).code(settings)


def knows_spec(settings: WorldSettings) -> bool:
    """Whether `spec_of` runs nothing that this process may not run."""
    return type_of(settings).knows_spec(settings)


def stored_spec(settings: WorldSettings, document: Any) -> WorldSpec:
    """The shape of the world that `settings` describe, as `kept_spec` described it.

    It is that of `spec_of` from here on, where the world's code may not run. A world that need not
    be asked is not; one that must be, but has None for a document, is asked as `spec_of` asks it.
    Raises ValueError, which says why, where `document` describes no world.
    """
    if document is None or not isinstance(type_of(settings), AskedType):
        return spec_of(settings)
    spec = spec_from(document)
    for fault in spec_faults(spec):
        raise ValueError(fault)
    type_of(settings).keep_spec(settings, spec)
    return spec


def kept_spec(settings: WorldSettings) -> dict[str, Any] | None:
    """The shape of the world that `settings` describe, for `stored_spec`; None: it needs none."""
    return spec_document(spec_of(settings)) if isinstance(type_of(settings), AskedType) else None


def evaluated(settings: WorldSettings) -> WorldSettings:
    """Settings of the world in which agents that learned under `settings` are judged."""
    other: WorldSettings = type_of(settings).evaluated(settings)
    return other


def content_of(settings: WorldSettings) -> dict[str, str] | None:
    """What `settings` name and do not hold, as plain data to be kept; None: nothing."""
    found = type_of(settings).content(settings)
    return None if found is None else found._asdict()


def content_fault(recorded: Any, settings: WorldSettings) -> str | None:
    """What is wrong where `recorded`, as `content_of` gave it then, is another now; None: nothing.

    What an older version recorded holds nothing of the kind: None.
    """
    here = type_of(settings).content(settings)
    if recorded is None or here is None or recorded == here._asdict():
        return None
    known = recorded if isinstance(recorded, Mapping) else {}
    name, sha256 = (shortened(one_line(str(known.get(key))), 40) for key in ("name", "sha256"))
    other = here.sha256[:HASH_DIGITS]
    if name != here.name:
        other = f"{here.name} {other}"
    return f"recorded on another {here.noun} ({name} {sha256[:HASH_DIGITS]}, here {other})"


def seats_in(settings: WorldSettings) -> int:
    """How many agents there are in all rows of the world that `settings` describe."""
    return spec_of(settings).agents * type_of(settings).rows(settings)


def with_shape_of(settings: WorldSettings, other: WorldSettings) -> WorldSettings:
    """`settings` with what `other` says of observations and actions."""
    chosen: Any = settings
    keys = type_of(settings).shape_keys if settings.world == other.world else ()
    changed: WorldSettings = replace(chosen, **{key: getattr(other, key) for key in keys})
    return changed


def as_dict(settings: WorldSettings) -> dict[str, Any]:
    """`settings` as plain data."""
    chosen: Any = settings
    return asdict(chosen)


def default_type() -> WorldType:
    """The kind of world that is meant where none is named."""
    return WORLDS[DEFAULT]


def named_type(env: Any) -> WorldType | None:
    """The kind of world that the mapping `env` of a file names; None where it names none."""
    name = _BY_NAME.named(env if isinstance(env, Mapping) else {})
    try:
        return WORLDS[name] if isinstance(name, str) and name in WORLDS else None
    except ConfigurationError:  # which the settings themselves report
        return None


def files_of_key(key: str) -> KeptFiles:
    """The files that some world's settings name under `key`; ConfigurationError: there are none."""
    worlds = (WORLDS[name].files for name in WORLDS)
    files = next((one for one in worlds if one is not None and one.key == key), None)
    if files is None:
        raise ConfigurationError(f"no world that is installed has {key}")
    return files


def default_settings() -> WorldSettings:
    """The settings of the world that is meant where none is named."""
    return settings_with()


def settings_with(**values: Any) -> WorldSettings:
    """Settings of the world that is meant where none is named, with these `values`."""
    chosen: WorldSettings = default_type().settings(**values)
    return chosen

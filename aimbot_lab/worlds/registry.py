"""Which worlds exist: those of this package, and those that other packages bring.

A package brings a world by an entry point of the group `aimbot_lab.worlds`, whose name is the
world's and whose object is a `foundation.world_type.WorldType`.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import ValidationError

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.registry import Registry, SettingsByName
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import AskedType, KeptFiles, WorldSettings, WorldType
from aimbot_lab.worlds.arena.world_type import ARENA
from aimbot_lab.worlds.duel.world_type import DUEL
from aimbot_lab.worlds.gorge.world_type import GORGE
from aimbot_lab.worlds.gymnasium.world_type import GYMNASIUM
from aimbot_lab.worlds.spec_checks import spec_faults
from aimbot_lab.worlds.unity.world_type import UNITY

DEFAULT = ARENA.name
HASH_DIGITS = 6  # of a content's hash that a person is shown
WORLDS: Registry[WorldType] = Registry(
    group="aimbot_lab.worlds",
    noun="world",
    key="world",
    kind=WorldType,
    own=MappingProxyType({one.name: one for one in (ARENA, DUEL, GORGE, GYMNASIUM, UNITY)}),
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


def with_rows(settings: WorldSettings, num_envs: int) -> WorldSettings:
    """`settings` with `num_envs` rows. Raises ConfigurationError where the world takes fewer."""
    chosen: Any = settings
    try:
        changed: WorldSettings = replace(chosen, num_envs=num_envs)
    except ValidationError as error:
        limits = error.errors()[0].get("ctx", {})
        most = f" takes at most {limits['le']:,}" if "le" in limits else " does not take so many"
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
    """The kind of world that the mapping `env` of a file names; None where there is none such."""
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

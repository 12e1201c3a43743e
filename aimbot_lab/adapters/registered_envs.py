"""Gymnasium environments made from keywords, of any world: what the registered ids stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import gymnasium
from pydantic import TypeAdapter, ValidationError

from aimbot_lab.adapters.gymnasium_env import WorldEnv, WorldVectorEnv
from aimbot_lab.adapters.spaces import ActionKind
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import ParameterValue, Sampler
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.foundation.world import BatchWorld, Scenario
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.worlds.registry import DEFAULT, WORLDS, make_world, world_types

GivenSettings = WorldSettings | Mapping[str, Any]
GivenScenario = Scenario | Mapping[str, Any]

SCENARIO_KEYS = tuple(field.name for field in fields_of(Scenario))
HINTS = MappingProxyType(
    {
        **{key: f"give it as scenario={{{key!r}: ...}}" for key in SCENARIO_KEYS},
        "autoreset_mode": "it is always SAME_STEP: a row is reset in the step that ends its "
        "episode; leave it out",
    }
)


class RegisteredEnv(WorldEnv):
    """One row of a world.

    `scenario` and `settings` are the dataclasses or mappings of their fields; any other field
    of the world's settings can be given by keyword and wins over `settings`. `world` is its name
    in the registry, the arena where it is left out. Raises ConfigurationError for what the world
    does not have.
    """

    def __init__(
        self,
        scenario: GivenScenario,
        settings: GivenSettings | None = None,
        *,
        action: ActionKind = "bins",
        aim_bins: Sequence[float] | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        world = world_with(world_settings(settings, {**fields, "num_envs": 1}), scenario)
        super().__init__(world, action=action, aim_bins=aim_bins, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_fps": 1.0 / world.spec.decision_seconds}


class RegisteredVectorEnv(WorldVectorEnv):
    """`num_envs` rows of a world; the rest as in `RegisteredEnv`.

    An `autoreset_mode` is refused: it is always SAME_STEP, because a world resets a finished
    row within the step that ends its episode.
    """

    def __init__(
        self,
        num_envs: int,
        scenario: GivenScenario,
        settings: GivenSettings | None = None,
        *,
        action: ActionKind = "bins",
        aim_bins: Sequence[float] | None = None,
        render_mode: str | None = None,
        **fields: Any,
    ) -> None:
        world = world_with(world_settings(settings, {**fields, "num_envs": num_envs}), scenario)
        super().__init__(world, action=action, aim_bins=aim_bins, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_fps": 1.0 / world.spec.decision_seconds}


def world_settings(settings: GivenSettings | None, fields: Mapping[str, Any]) -> WorldSettings:
    """`settings` with `fields` in the place of theirs. Raises ConfigurationError for no such."""
    given = {**(settings if isinstance(settings, Mapping) else {}), **fields}
    kind = _settings_class(settings, given.get("world", DEFAULT))
    if not isinstance(settings, kind | Mapping | None):
        raise ConfigurationError(
            f"settings must be {kind.__name__} or a mapping of its fields (got {settings!r:.80})"
        )
    _refuse_unknown("", given, tuple(field.name for field in fields_of(kind)))
    old: Any = settings
    try:
        chosen = replace(old, **fields) if isinstance(settings, kind) else kind(**given)
    except ValidationError as error:
        raise ConfigurationError(*_faults("", error)) from error
    return cast(WorldSettings, chosen)


def _settings_class(settings: object, name: Any) -> type[Any]:
    """The class of `settings` where they are of a world, else of those of the world `name`."""
    own = getattr(settings, "world", None)
    if isinstance(own, str) and own in WORLDS:
        return WORLDS[own].settings
    if not isinstance(name, str) or name not in WORLDS:
        *others, last = WORLDS
        known = f"{', '.join(others)} or {last}"
        raise ConfigurationError(f"world: must be {known} (got {name!r:.80})")
    return WORLDS[name].settings


def _refuse_unknown(where: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ConfigurationError(*(f"{where}{key}: {_hint(key, known)}" for key in unknown))


def _hint(key: str, known: Sequence[str]) -> str:
    if key in HINTS:
        return HINTS[key]
    return f"unknown key ({nearest_name(str(key), known)})"


def _faults(where: str, error: ValidationError) -> list[str]:
    return [
        f"{where}{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors()
    ]


def world_with(settings: WorldSettings, scenario: GivenScenario) -> BatchWorld:
    """The world of `settings` that draws its episodes from `scenario`, not yet reset.

    Raises ConfigurationError for what the world does not have.
    """
    world = make_world(settings)
    world.set_scenario(scenario if isinstance(scenario, Scenario) else _scenario(scenario))
    return world


def _scenario(given: Mapping[str, Any]) -> Scenario:
    """The scenario of these fields, whose samplers may be mappings; the world judges the rest."""
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"scenario must be a Scenario or a mapping of its fields (got {given!r:.80})"
        )
    _refuse_unknown("scenario.", given, SCENARIO_KEYS)
    if "targets" not in given:
        raise ConfigurationError("scenario.targets: is missing")
    for key, value in given.items():
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"scenario.{key}: must be a mapping (got {value!r:.80})")
    parameters = given.get("parameters", {})
    drawn = {name: _parameter(name, value) for name, value in parameters.items()}
    return Scenario(given["targets"], given.get("difficulty", {}), drawn)


def _parameter(name: str, value: Any) -> ParameterValue:
    if not isinstance(value, Mapping):
        return value  # type: ignore[no-any-return]
    try:
        sampler: ParameterValue = TypeAdapter(Sampler).validate_python(value)
    except ValidationError as error:
        raise ConfigurationError(*_faults(f"scenario.parameters.{name}: ", error)) from error
    return sampler


def register_ids() -> None:
    """Register every id of every world that gymnasium does not know yet."""
    for world in world_types().values():
        for name, targets in world.gymnasium_ids.items():
            if name not in gymnasium.registry:
                gymnasium.register(
                    name,
                    entry_point=f"{__name__}:RegisteredEnv",
                    vector_entry_point=f"{__name__}:RegisteredVectorEnv",
                    kwargs={"world": world.name, "scenario": {"targets": dict(targets)}},
                )

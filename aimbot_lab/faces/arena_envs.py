"""The arena's Gymnasium environments, made from keywords: what the registered ids stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from aimbot_lab.faces.gymnasium_actions import ActionKind
from aimbot_lab.faces.gymnasium_env import WorldEnv
from aimbot_lab.faces.gymnasium_vector import WorldVectorEnv
from aimbot_lab.faces.registry import make_world
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BatchWorld, Scenario
from aimbot_lab.sim.settings import ArenaSettings

GivenSettings = ArenaSettings | Mapping[str, Any]
GivenScenario = Scenario | Mapping[str, Any]


class ArenaEnv(WorldEnv):
    """One row of the arena.

    `scenario` and `settings` are the dataclasses or mappings of their fields; any other field
    of `ArenaSettings` can be given by keyword and wins over `settings`. Raises
    ConfigurationError for what the arena does not have.
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
        chosen = _arena_settings(settings, {**fields, "num_envs": 1})
        world = _arena(chosen, scenario)
        super().__init__(world, action=action, aim_bins=aim_bins, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_fps": _frame_rate(chosen)}


class ArenaVectorEnv(WorldVectorEnv):
    """`num_envs` rows of the arena; the rest as in `ArenaEnv`."""

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
        chosen = _arena_settings(settings, {**fields, "num_envs": num_envs})
        world = _arena(chosen, scenario)
        super().__init__(world, action=action, aim_bins=aim_bins, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_fps": _frame_rate(chosen)}


def _arena_settings(settings: GivenSettings | None, fields: Mapping[str, Any]) -> ArenaSettings:
    try:
        if isinstance(settings, ArenaSettings):
            return replace(settings, **fields)
        return ArenaSettings(**{**(settings or {}), **fields})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise ConfigurationError(*faults) from error


def _arena(settings: ArenaSettings, scenario: GivenScenario) -> BatchWorld:
    world = make_world(settings)
    world.set_scenario(scenario if isinstance(scenario, Scenario) else Scenario(**scenario))
    return world


def _frame_rate(settings: ArenaSettings) -> float:
    """Decisions in a second."""
    return 1.0 / settings.decision_seconds

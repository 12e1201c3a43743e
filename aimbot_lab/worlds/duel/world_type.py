"""The duel, as others know it, with its scenes."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.display import Mouse, SceneView, WorldScenes
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import BatchWorld, Float32Array, WorldSpec
from aimbot_lab.foundation.world_type import (
    Bounds,
    KeptFiles,
    MakePlayer,
    Opponents,
)
from aimbot_lab.worlds.duel.core.state import (
    ACTION_COLUMNS,
    AWAY,
    LEARNED,
    LEVELS,
    MOUSE,
    OF_SEATS,
    SCRIPTS,
    SHARED,
    TARGET,
)
from aimbot_lab.worlds.duel.layouts import (
    FORM,
    kept_layouts,
    lacking_fault,
    layout_count,
    layouts_of,
    listed_layouts,
)
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.replays import DuelReplays
from aimbot_lab.worlds.duel.settings import (
    DECLARED,
    DuelSettings,
    SelfPlayDuelSettings,
    parameter_bounds,
    parameter_fault,
)
from aimbot_lab.worlds.duel.spec import duel_spec, targets_of
from aimbot_lab.worlds.parameters import KernelType, setting_text

if TYPE_CHECKING:
    from PIL.Image import Image

BACK = 2  # and left: index of a branch whose 1 is ahead or right


class DuelScenes(WorldScenes):
    """Matches of the duel, which can't be edited; nothing heavy is loaded before one is shown."""

    def view(
        self,
        world: Any,
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """The match of `row` now, or as its last one ended."""

        from aimbot_lab.worlds.duel.draw import match_view

        del before, action  # the state knows the shots
        duel = world.duel
        last = duel.ended_state if ended else None
        return match_view(
            duel.state if last is None else last,
            row % duel.num_envs,
            rays=duel.settings.rays.count,
        )

    def replayed(self, settings: DuelSettings, state: Any) -> SceneView:
        """The match that a renderer is given."""
        from aimbot_lab.worlds.duel.draw import match_view

        return match_view(state, 0, rays=settings.rays.count)

    def mouse(self, settings: DuelSettings) -> Mouse:
        """The mouse turns the agent."""
        return Mouse(MOUSE, settings.mouse_limit, settings.mouse_factor)

    def action(self, *, right: int, ahead: int, attack: bool, mouse: float) -> Float32Array:
        """Vertical, horizontal, attack, mouse."""
        vertical, horizontal = (BACK if way < 0 else way for way in (ahead, right))
        made = np.array([vertical, horizontal, attack, mouse], np.float32)
        assert len(made) == ACTION_COLUMNS
        return made


def _drawn(paths: Sequence[Path]) -> "Image":
    from aimbot_lab.worlds.duel.draw import draw_layout_sheet

    return draw_layout_sheet(layouts_of(paths))


class DuelType(KernelType):
    """Two agents in one hall."""

    name = "duel"
    settings = DuelSettings
    files = KeptFiles(
        key="layouts",
        form=FORM,
        read=kept_layouts,
        listed=listed_layouts,
        count=layout_count,
        draw=_drawn,
    )
    shape_keys = ("rays", "observation", "observed_parameters", "mouse_limit")
    bounding_keys = ("rays", *DECLARED)
    replays = DuelReplays()
    scenes = DuelScenes()
    self_play_targets = LEARNED

    def spec(self, settings: DuelSettings) -> WorldSpec:
        """The shape of a duel with `settings`."""
        return duel_spec(settings)

    def make(self, settings: DuelSettings) -> BatchWorld:
        """A duel with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.duel.duel import Duel
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return Duel(settings) if settings.learner == "both" else OpposedWorld(settings)

    def rows(self, settings: DuelSettings) -> int:
        """Matches, and once more those that are mirrored, whose away seats are rows as well."""
        mirrored = settings.mirrored if isinstance(settings, SelfPlayDuelSettings) else 0
        return settings.num_envs + mirrored

    def single_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with home as the only learner."""
        return replace(settings, learner="home")

    def match_settings(self, settings: DuelSettings) -> DuelSettings:
        """`settings` with both agents played from outside."""
        return replace(settings, learner="both")

    def self_play_settings(self, settings: DuelSettings, share: float) -> SelfPlayDuelSettings:
        """The duel with this `share` of its matches mirrored."""
        own = {one.name: getattr(settings, one.name) for one in fields(DuelSettings)}
        mirrored = round(share * settings.num_envs)
        return SelfPlayDuelSettings(**{**own, "learner": "home"}, mirrored=mirrored)

    def make_opposed(self, settings: SelfPlayDuelSettings, opponents: Opponents) -> BatchWorld:
        """A duel against `opponents`, not yet reset."""
        from aimbot_lab.worlds.duel.opposed import OpposedWorld

        return OpposedWorld(settings, opponents=opponents, mirrored=settings.mirrored)

    def targets(self, settings: DuelSettings | None) -> Mapping[str, int]:
        """The duel itself where both agents learn, else who sits opposite; without settings all."""
        names = (TARGET, *SCRIPTS) if settings is None else targets_of(settings)
        return dict.fromkeys(names, LEVELS)

    def baselines(self, settings: DuelSettings) -> Mapping[str, MakePlayer]:
        """Scripted players, from the weakest to the strongest; each plays all seats."""
        return make_players(settings)

    def parameters(self, settings: DuelSettings | None) -> Mapping[str, Bounds]:
        """Every number that a match depends on."""
        del settings
        return parameter_bounds()

    def parameter_texts(self) -> Mapping[str, str]:
        """What the setting of each parameter's name says about itself."""
        plain = {name: setting_text(DuelSettings, name) for name in (*SHARED, *OF_SEATS)}
        return {
            **plain,
            **{AWAY + name: f"The away agent's: {plain[name]}" for name in OF_SEATS},
        }

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: DuelSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those that `settings` declare."""
        return parameter_fault(name, value, settings)

    def drawing_fault(
        self, settings: DuelSettings, target: str, weights: Sequence[float]
    ) -> str | None:
        """Whether each difficulty has a layout, where no shipped ones are."""
        del target, weights
        return lacking_fault(settings)


DUEL = DuelType()

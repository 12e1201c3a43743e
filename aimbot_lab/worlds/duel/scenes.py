"""A match as plain numbers for pages and films, in the home agent's frame."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.scenes import Mouse, SceneView, WorldScenes
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS, MOUSE
from aimbot_lab.worlds.duel.settings import DuelSettings

BACK = 2  # and left: index of a branch whose 1 is ahead or right


class DuelScenes(WorldScenes):
    """Matches of the duel, which nobody edits; nothing heavy is loaded before one is looked at."""

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

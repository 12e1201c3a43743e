"""The arena's part in pages: its rows as numbers, and who edits them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.scenes import Mouse, SceneEditor, SceneView, WorldScenes
from aimbot_lab.foundation.world import Float32Array, Scenario
from aimbot_lab.worlds.arena.settings import ArenaSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.arena.arena import Arena

MOUSE = 3  # column of an action
BACK = 2  # and left: index of a branch whose 1 is ahead or right


class ArenaScenes(WorldScenes):
    """Rows of the arena; nothing heavy is loaded before one is looked at."""

    resting = Scenario({"stay": 1.0})

    def editor(self, world: "Arena") -> SceneEditor:
        """The test mode of the arena."""
        from aimbot_lab.worlds.arena.scenes.files import ArenaEditor

        return ArenaEditor(world)

    def view(
        self,
        world: "Arena",
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """`row` now, or as its last episode ended."""
        from aimbot_lab.worlds.arena.scenes.view import events, row_view

        last = world.ended_state if ended else None
        state = world.state if last is None else last
        record = world.records.get(row)
        if record is not None and record.episode != state.episode[row]:
            record = None
        shown = row_view(state, row, rays=world.settings.rays.count, record=record)
        if before is None or action is None:
            return shown
        fired, hit = events(before, shown, action)
        return replace(shown, fired=fired, hit=hit)

    def replayed(self, settings: ArenaSettings, state: Any) -> SceneView:
        """The row that a renderer is given; its hit enemy, as it was before the shot."""
        from aimbot_lab.worlds.arena.scenes.view import row_view

        row, hit = state
        return replace(row_view(row, 0, rays=settings.rays.count), hit=hit)

    def mouse(self, settings: ArenaSettings) -> Mouse:
        """The mouse turns the agent."""
        return Mouse(MOUSE, settings.mouse_limit, settings.mouse_factor)

    def action(self, *, right: int, ahead: int, attack: bool, mouse: float) -> Float32Array:
        """Vertical, horizontal, attack, mouse."""
        vertical, horizontal = (BACK if way < 0 else way for way in (ahead, right))
        return np.array([vertical, horizontal, attack, mouse], np.float32)

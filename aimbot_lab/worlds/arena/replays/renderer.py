"""Recorded episodes of the arena as pictures from above, with the agent's way so far."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.replays import Scene
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena import draw
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.draw import Doings, draw_row
from aimbot_lab.worlds.arena.replays.words import FIRED
from aimbot_lab.worlds.arena.settings import ArenaSettings

COLOURS = (
    *(paint.FLOOR, paint.GRID, paint.BLOCK, paint.BLOCK_EDGE, paint.WALL, paint.OBSTACLE),
    *(paint.ENEMY, paint.ENEMY_DOWN, paint.AGENT, paint.DARK, paint.FIRE_BASE_EDGE, draw.SHOT),
    paint.blended(paint.BLOCK, paint.FIRE_BASE),
    paint.blended(paint.BLOCK, paint.FIRE_BASE, draw.VIEW),
    paint.blended(paint.BLOCK, draw.VIEW),
    paint.blended(paint.FLOOR, draw.VIEW),
    paint.blended(paint.FLOOR, draw.VIEW, draw.RAY),
    paint.blended(paint.FLOOR, draw.VIEW, draw.ENEMY_RAY),
    paint.blended(paint.FLOOR, draw.TRAIL),
)
GROWN = 1.8  # how much larger the agent and its enemies are drawn, to be seen at all


class ArenaRenderer:
    """Draws the scenes of one episode; knows where the agent was."""

    def __init__(self, settings: ArenaSettings) -> None:
        self._settings = settings
        self._trail: list[npt.NDArray[np.float64]] = []

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """The arena from above, [size, size, 3]; with `coarse` agent and enemies are larger."""
        state, hit = scene.state
        self._trail.append(state.position[0].copy())
        if coarse:
            numbers = state.parameters.copy()
            numbers[:, [core.AGENT_RADIUS, core.ENEMY_RADIUS]] *= GROWN
            state = state._replace(parameters=numbers)
        doings = Doings(self._trail, bool(scene.events[FIRED]), hit)
        return draw_row(state, 0, self._settings, size=size, doings=doings)

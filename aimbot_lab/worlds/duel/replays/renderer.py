"""Recorded matches as pictures from above, with both agents' ways so far."""

import numpy as np

from aimbot_lab.foundation.replays import Scene
from aimbot_lab.foundation.world import Picture
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.core.state import Floats
from aimbot_lab.worlds.duel.core.state import AGENTS, DuelState
from aimbot_lab.worlds.duel.draw import draw_match, in_home_frame
from aimbot_lab.worlds.duel.settings import DuelSettings

GROWN = 1.8  # how much larger agents are drawn where pixels are few


class MatchRenderer:
    """Draws the scenes of one match; knows where both were."""

    def __init__(self, settings: DuelSettings) -> None:
        self._settings = settings
        self._ways: tuple[list[Floats], ...] = tuple([] for _ in range(AGENTS))

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """The hall from above, [size, size, 3]; with `coarse` agents are larger."""
        state: DuelState = scene.state
        for agent, way in enumerate(self._ways):
            way.append(np.array(in_home_frame(state.seats.position[agent].copy(), agent)))
        if coarse:
            numbers = state.seats.parameters.copy()
            numbers[:, [arena_core.AGENT_RADIUS, arena_core.ENEMY_RADIUS]] *= GROWN
            state = state._replace(seats=state.seats._replace(parameters=numbers))
        return draw_match(state, 0, self._settings, size=size, ways=self._ways)

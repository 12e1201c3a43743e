"""What happens in a recorded episode of the arena, in words."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import RowArrays, Scene
from aimbot_lab.foundation.world import BoolArray, Float32Array, Picture, StepBuffers
from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena import draw
from aimbot_lab.worlds.arena.arena import held_rows
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.draw import Doings, draw_row
from aimbot_lab.worlds.arena.replay_words import FIRED, HIT, goal
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.single_row import solo_arena

HASHED = ("position", "yaw", "enemy_hits_left", "gun_ticks", "terms")
NOTHING: Mapping[str, int] = {FIRED: 0, HIT: 0}


class ArenaReplayRow:
    """The arena that goes on from `start`. Raises MisuseError where that is none of an arena."""

    def __init__(self, settings: ArenaSettings, start: RowArrays) -> None:
        self.world = solo_arena(settings, start)
        self.world.keep_endings = True

    def beginning(self) -> Scene:
        """The row before the first decision."""
        return _scene(self.world.state, NOTHING, hit=-1)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The row after `actions` [1, 4], and what ended."""
        state = self.world.state
        ready = state.gun_ticks[0] <= 0 and not (self.world.tables.recalls and held_rows(state)[0])
        hits_left = state.enemy_hits_left[0].copy()
        batch = self.world.step(actions, buffers)
        after = self.world.ended_state or state
        hit = _index(hits_left > after.enemy_hits_left[0])
        events = {FIRED: int(ready and actions[0, 2] > 0), HIT: int(hit >= 0)}
        return _scene(after, events, hit=hit), batch


def _scene(state: ArenaState, events: Mapping[str, int], *, hit: int) -> Scene:
    numbers = state.parameters[0]
    period = numbers[core.AT.decision_period] * numbers[core.AT.fixed_timestep]
    return Scene(
        terms=state.terms[0, : len(core.REWARD_TERMS)].copy(),
        seconds=float(state.decisions[0] * period),
        time_limit=float(numbers[core.AT.time_limit]),
        state=(state, hit),
        goal=goal(state),
        events=events,
        trajectory=tuple(getattr(state, name) for name in HASHED),
    )


def _index(marks: BoolArray) -> int:
    return int(marks.argmax()) if marks.any() else -1


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
            numbers[:, [core.AT.agent_radius, core.AT.enemy_radius]] *= GROWN
            state = state._replace(parameters=numbers)
        doings = Doings(self._trail, bool(scene.events[FIRED]), hit)
        return draw_row(state, 0, self._settings, size=size, doings=doings)

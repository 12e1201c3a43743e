"""An arena of one row in which a recorded episode is played."""

from collections.abc import Mapping

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import RowArrays, Scene
from aimbot_lab.foundation.world import BoolArray, Float32Array, StepBuffers
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.recall import held_rows
from aimbot_lab.worlds.arena.replays.words import FIRED, HIT, goal
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
    period = numbers[core.DECISION_PERIOD] * numbers[core.FIXED_TIMESTEP]
    return Scene(
        terms=state.terms[0].copy(),
        seconds=float(state.decisions[0] * period),
        time_limit=float(numbers[core.TIME_LIMIT]),
        state=(state, hit),
        goal=goal(state),
        events=events,
        trajectory=tuple(getattr(state, name) for name in HASHED),
    )


def _index(marks: BoolArray) -> int:
    return int(marks.argmax()) if marks.any() else -1

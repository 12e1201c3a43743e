"""A match as it begins: its own values, from which a world of one match goes on."""

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import MakeWorld, RowArrays, Scene
from aimbot_lab.foundation.world import BatchWorld, Float32Array, Picture, StepBuffers
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.core.state import Floats
from aimbot_lab.worlds.duel.core.state import AGENTS, DuelState
from aimbot_lab.worlds.duel.draw import draw_match, in_home_frame
from aimbot_lab.worlds.duel.replay_words import events, goal
from aimbot_lab.worlds.duel.settings import DuelSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.duel.duel import Duel


HASHED = ("health", "terms", "shot")
HASHED_OF_SEATS = ("position", "yaw", "gun_ticks")


class MatchReplayRow:
    """The match that goes on from `start`. Raises MisuseError where that is of no such world."""

    def __init__(self, settings: DuelSettings, start: RowArrays, make: MakeWorld) -> None:
        self.world: BatchWorld = make(settings)
        self.world.restore(start)
        self.world.keep_endings = True
        self._duel = cast("HasDuel", self.world).duel

    def beginning(self) -> Scene:
        """The match before the first decision."""
        return _scene(self._duel.state)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The match after `actions` [agents, 4], and what ended."""
        batch = self.world.step(actions, buffers)
        state = (self._duel.ended_state if batch else None) or self._duel.state
        return _scene(state), batch


class HasDuel(Protocol):
    """A world that is a duel, or has one within."""

    @property
    def duel(self) -> "Duel":
        """The duel."""
        ...


def _scene(state: DuelState) -> Scene:
    seats = state.seats
    numbers = seats.parameters[0]
    period = numbers[arena_core.AT.decision_period] * numbers[arena_core.AT.fixed_timestep]
    return Scene(
        terms=state.terms[0].copy(),
        seconds=float(seats.decisions[0] * period),
        time_limit=float(numbers[arena_core.AT.time_limit]),
        state=state,
        goal=goal(state),
        events=events(state),
        trajectory=(
            *(getattr(state, name) for name in HASHED),
            *(getattr(seats, name) for name in HASHED_OF_SEATS),
        ),
    )


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
            numbers[:, [arena_core.AT.agent_radius, arena_core.AT.enemy_radius]] *= GROWN
            state = state._replace(seats=state.seats._replace(parameters=numbers))
        return draw_match(state, 0, self._settings, size=size, ways=self._ways)

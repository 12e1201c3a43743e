"""A world of one match in which a recorded one is played."""

from typing import TYPE_CHECKING, Protocol, cast

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import MakeWorld, RowArrays, Scene
from aimbot_lab.foundation.world import BatchWorld, Float32Array, StepBuffers
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.duel.core.state import DuelState
from aimbot_lab.worlds.duel.replays.words import events, goal
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
    period = numbers[arena_core.DECISION_PERIOD] * numbers[arena_core.FIXED_TIMESTEP]
    return Scene(
        terms=state.terms[0].copy(),
        seconds=float(seats.decisions[0] * period),
        time_limit=float(numbers[arena_core.TIME_LIMIT]),
        state=state,
        goal=goal(state),
        events=events(state),
        trajectory=(
            *(getattr(state, name) for name in HASHED),
            *(getattr(seats, name) for name in HASHED_OF_SEATS),
        ),
    )

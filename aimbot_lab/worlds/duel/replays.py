"""The duel's part in recorded episodes: how matches begin and play."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from aimbot_lab.foundation.display import (
    ArrowKeys,
    Colour,
    Control,
    FilmPainter,
    Gauge,
    Indicator,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    SceneRenderer,
    WorldReplays,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.world import BatchWorld, Float32Array, StepBuffers, WorldSpec
from aimbot_lab.worlds.arena.core import state as arena_core
from aimbot_lab.worlds.arena.replays import action_words
from aimbot_lab.worlds.arena.spec import FIRED
from aimbot_lab.worlds.duel.core.state import IN_SEATS, KINDS, SELF, DuelState
from aimbot_lab.worlds.duel.settings import DuelSettings, one_match
from aimbot_lab.worlds.duel.spec import ENDINGS, HURT, events, goal, seat_names

if TYPE_CHECKING:
    from aimbot_lab.worlds.duel.duel import Duel


OF_ALL = ("sampler_key", "clock")  # arrays that no match has one of its own in


def match_start(arrays: Mapping[str, np.ndarray], row: int, matches: int) -> dict[str, np.ndarray]:
    """Copies of what match `row` of `matches` depends on, of the arrays of a snapshot of a duel."""
    # With a world, which is compiled, there is more to load than this module alone needs.
    from aimbot_lab.worlds.kernel_world import FITS, OF_SCENARIO

    both = [row, row + matches]
    found = {}
    for name, array in arrays.items():
        if name == FITS or name.startswith(OF_SCENARIO) or name.rpartition(".")[2] in OF_ALL:
            found[name] = array.copy()
        elif name.startswith(IN_SEATS) or len(array) == 2 * matches:
            found[name] = array[both]
        else:
            found[name] = array[row : row + 1].copy()
    return found


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


class DuelReplays(WorldReplays):
    """Matches of the duel; nothing heavy is loaded before one is recorded or played.

    A match is kept with the actions of both agents, whichever learns: who sat opposite, such as a
    past self, need not be there to play it again.
    """

    result_terms = MappingProxyType({WIN: "win", LOSS: "win"})

    def colours(self) -> Sequence[Colour]:
        """What pictures and films hold."""
        from aimbot_lab.worlds.duel.draw import COLOURS
        from aimbot_lab.worlds.duel.film import FILM_COLOURS

        return (*COLOURS, *FILM_COLOURS)

    def row_start(self, world: Any, row: int) -> RowArrays | None:
        """The match's values, before the first decision.

        None for the away rows of mirrored matches: the home rows are of the same ones.
        """

        from aimbot_lab.worlds.kernel_world import FITS

        duel: Duel = world.duel
        if row >= duel.num_envs or duel.state.seats.decisions[row] > 0:
            return None
        start = match_start(duel.arrays(), row, duel.num_envs)
        start[FITS] = getattr(world, "match_fits", start[FITS]).copy()
        if row < getattr(world, "mirrored", 0):
            start["kind"][:] = KINDS.index(SELF)  # as its result says
        return start

    def row_settings(self, settings: DuelSettings) -> DuelSettings:
        """The duel of one match in which both seats are played from outside."""
        return one_match(settings)

    def row_actions(self, world: Any, row: int, actions: Float32Array) -> Float32Array:
        """What both agents of match `row` did in the last step, [2, 4]."""
        if world.spec.agents > 1:
            return super().row_actions(world, row, actions)
        made: Float32Array = world.match_actions(row)
        return made

    def kept_row(self, world: Any) -> int:
        """The first match that is not mirrored, where there is one."""
        mirrored: int = getattr(world, "mirrored", 0)
        return mirrored if mirrored < world.duel.num_envs else 0

    def replay_row(self, settings: DuelSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world of one match. Raises MisuseError where `start` is not of one."""
        return MatchReplayRow(settings, start, make)

    def renderer(self, settings: DuelSettings) -> SceneRenderer:
        """Who draws matches from above."""
        from aimbot_lab.worlds.duel.draw import MatchRenderer

        return MatchRenderer(settings)

    def seat_names(self, about: Mapping[str, Any], target: str) -> tuple[str, ...]:
        """Who plays home and away."""
        return seat_names(about, target)

    def film(self, settings: DuelSettings, about: Mapping[str, Any]) -> FilmPainter:
        """Who paints a match as both agents see it, and from above."""
        from aimbot_lab.worlds.duel.film import MatchFrames

        return MatchFrames(settings, about)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The home agent's keys, mouse and gun, and whether it was hit."""
        up, side = (0, 0) if action is None else (int(action[0]), int(action[1]))
        mouse = 0.0 if action is None else float(action[3])
        return (
            ArrowKeys(up=up == 1, down=up == 2, left=side == 2, right=side == 1),
            Gauge("turns", max(-1.0, min(mouse / spec.continuous_limit, 1.0))),
            Indicator("shoots", bool(scene.events[FIRED])),
            Indicator("is hit", bool(scene.events[HURT])),
        )

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """What the home agent does, and whether it was hit."""
        del spec
        words = action_words(action, scene.events)
        return f"{words}, IS HIT" if scene.events[HURT] else words

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How a match of `seconds` ended for the home agent."""
        return f"{ENDINGS.get(outcome, 'LOST')} after {seconds:.1f} s"

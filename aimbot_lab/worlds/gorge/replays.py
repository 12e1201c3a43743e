"""Gorge Walk's part in recorded episodes: how they begin and play, and what they say."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from aimbot_lab.foundation.display import (
    ArrowKeys,
    Colour,
    Control,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    WorldReplays,
)
from aimbot_lab.foundation.episodes import LOSS, WIN, EpisodeBatch
from aimbot_lab.foundation.world import Float32Array, StepBuffers, WorldSpec
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import MAX_VIEW, SIDE, GorgeState
from aimbot_lab.worlds.gorge.settings import GorgeSettings, Move

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge

DERIVED = ("arrivals", "walked")  # large, and known at a beginning: one arrival where it starts


BUMPS, TREASURES = "bumps", "treasures"  # events
HASHED = ("x", "z", "left", "score", "terms")


class GorgeReplayRow:
    """The game that goes on from `start`. Raises MisuseError where that is of no such world."""

    def __init__(self, settings: GorgeSettings, start: RowArrays, make: MakeWorld) -> None:
        self.world = world = cast("Gorge", make(settings))
        empty = {name: np.zeros_like(getattr(world.state, name)) for name in DERIVED}
        world.restore({**start, **empty})
        x, z = int(world.state.x[0]), int(world.state.z[0])
        world.state.arrivals[0, SIDE * x + z] = 1
        world.state.walked[0, x + MAX_VIEW] = np.uint64(1) << np.uint64(z)
        world.keep_endings = True

    def beginning(self) -> Scene:
        """The row before the first decision."""
        return self._scene(self.world.state, {BUMPS: 0, TREASURES: 0}, ended=False)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The row after `actions` [1, 1], and what ended."""
        state = self.world.state
        bumps, left = int(state.bumps[0]), int(state.left[0])
        batch = self.world.step(actions, buffers)
        after = (self.world.ended_state if batch else None) or state
        taken = (left & ~int(after.left[0])).bit_count()
        events = {BUMPS: int(after.bumps[0]) - bumps, TREASURES: taken}
        return self._scene(after, events, ended=bool(batch)), batch

    def _scene(self, state: GorgeState, events: Mapping[str, int], *, ended: bool) -> Scene:
        world, limit = self.world, float(state.parameters[0, core.MAX_STEPS])
        return Scene(
            terms=state.terms[0].copy(),
            seconds=float(state.steps[0]),
            time_limit=limit,
            state=lambda: world.draw(0, ending=ended),
            goal=goal(state),
            events=events,
            trajectory=tuple(getattr(state, name) for name in HASHED),
        )


def goal(state: GorgeState) -> str:
    """What is to be done in row 0 of `state`, and how much of it is left."""
    left = int(state.left[0]).bit_count()
    if state.target[0] == core.WALK:
        return "walk to the end"
    treasures = f"{left} of {int(state.placed[0]).bit_count()} treasures left"
    if state.target[0] == core.COLLECT:
        return f"collect all: {treasures}"
    return f"score {float(state.score[0]):g}: {treasures}"


FRAME_SECONDS = 0.05  # of a film to a step


class GorgeReplays(WorldReplays):
    """Episodes of Gorge Walk; nothing heavy is loaded before one is recorded or played."""

    result_terms = MappingProxyType({WIN: "win", LOSS: "lose"})
    choice_words = (tuple(move.name for move in Move),)

    def colours(self) -> Sequence[Colour]:
        """What pictures from above hold."""
        from aimbot_lab.worlds.gorge.draw import COLOURS

        return COLOURS

    def frame_seconds(self, spec: WorldSpec) -> float:
        """Of a film to a step; the game itself has no clock."""
        del spec
        return FRAME_SECONDS

    def row_start(self, world: "Gorge", row: int) -> RowArrays | None:
        """The row's values, where it has made no step yet."""
        if world.state.steps[row] > 0:
            return None
        of_rows = set(world.state._fields) - {"sampler_key", "clock"}
        return {
            name: (array[row : row + 1] if name in of_rows else array).copy()
            for name, array in world.arrays().items()
            if name not in DERIVED
        }

    def replay_row(self, settings: GorgeSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world of one row. Raises MisuseError where `start` is not of one."""
        return GorgeReplayRow(settings, start, make)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The arrow keys."""
        del spec, scene
        pressed = [action is not None and int(action[0]) == move for move in Move]
        return (ArrowKeys(*pressed),)

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """Where it goes, and whether a wall stopped it."""
        del spec
        if action is None:
            return "begins"
        return Move(int(action[0])).name + (": bumps" if scene.events["bumps"] else "")

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of `seconds` steps ended."""
        return f"{'WON' if outcome == WIN else 'LOST'} after {seconds:.0f} steps"

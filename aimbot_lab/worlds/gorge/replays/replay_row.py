"""A world of one row in which a recorded episode of Gorge Walk is played."""

from collections.abc import Mapping

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.replays import MakeWorld, RowArrays, Scene
from aimbot_lab.foundation.world import Float32Array, StepBuffers
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import GorgeState
from aimbot_lab.worlds.gorge.replays.row_start import restored
from aimbot_lab.worlds.gorge.settings import GorgeSettings

BUMPS, TREASURES = "bumps", "treasures"  # events
HASHED = ("x", "z", "left", "score", "terms")


class GorgeReplayRow:
    """The game that goes on from `start`. Raises MisuseError where that is of no such world."""

    def __init__(self, settings: GorgeSettings, start: RowArrays, make: MakeWorld) -> None:
        self.world = restored(settings, start, make)
        self.world.keep_endings = True

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

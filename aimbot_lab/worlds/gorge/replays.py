"""Gorge Walk's part in recorded episodes."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from aimbot_lab.foundation.episodes import LOSS, WIN
from aimbot_lab.foundation.replays import (
    ArrowKeys,
    Colour,
    Control,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    WorldReplays,
)
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.worlds.gorge.settings import GorgeSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge

FRAME_SECONDS = 0.05  # of a film to a step


class GorgeReplays(WorldReplays):
    """Episodes of Gorge Walk; nothing heavy is loaded before one is recorded or played."""

    result_terms = MappingProxyType({WIN: "win", LOSS: "lose"})

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
        from aimbot_lab.worlds.gorge.replay_row import row_start

        return row_start(world, row) if world.state.steps[row] == 0 else None

    def replay_row(self, settings: GorgeSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world of one row. Raises MisuseError where `start` is not of one."""
        from aimbot_lab.worlds.gorge.replay_row import GorgeReplayRow

        return GorgeReplayRow(settings, start, make)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The arrow keys."""
        del spec, scene
        pressed = [action is not None and int(action[0]) == move for move in range(len(MOVES))]
        return (ArrowKeys(*pressed),)

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """Where it goes, and whether a wall stopped it."""
        del spec
        if action is None:
            return "begins"
        return MOVES[int(action[0])] + (": bumps" if scene.events["bumps"] else "")

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of so many steps ended."""
        return f"{'WON' if outcome == WIN else 'LOST'} after {seconds:.0f} steps"


MOVES = ("up", "down", "left", "right")

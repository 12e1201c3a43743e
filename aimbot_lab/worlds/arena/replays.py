"""The arena's part in recorded episodes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from aimbot_lab.foundation.episodes import LOSS, WIN
from aimbot_lab.foundation.replays import (
    ArrowKeys,
    Colour,
    Control,
    Gauge,
    Indicator,
    MakeWorld,
    ReplayRow,
    RowArrays,
    Scene,
    SceneRenderer,
    WorldReplays,
)
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.worlds.arena.core.state import AT
from aimbot_lab.worlds.arena.replay_words import FIRED, action_words, ending_words
from aimbot_lab.worlds.arena.settings import ArenaSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.arena.arena import Arena


class ArenaReplays(WorldReplays):
    """Episodes of the arena; nothing heavy is loaded before one is recorded or played."""

    result_terms = MappingProxyType({WIN: "win", LOSS: "lose"})

    def colours(self) -> Sequence[Colour]:
        """What pictures from above hold."""
        from aimbot_lab.worlds.arena.replay_row import COLOURS

        return COLOURS

    def row_start(self, world: "Arena", row: int) -> RowArrays | None:
        """The row's arrays, where it has made no decision yet."""
        from aimbot_lab.worlds.arena.single_row import row_of

        return row_of(world.state, row) if world.state.decisions[row] == 0 else None

    def row_settings(self, settings: ArenaSettings) -> ArenaSettings:
        """`settings` of an arena of one row; target blocks come with the row."""
        from aimbot_lab.worlds.arena.single_row import solo_settings

        return solo_settings(settings)

    def start_types(self, settings: ArenaSettings, make: MakeWorld) -> Mapping[str, np.dtype[Any]]:
        """The types of the state's arrays."""
        from aimbot_lab.worlds.arena.allocate import new_state, new_tables
        from aimbot_lab.worlds.arena.single_row import OF_ALL_ROWS

        del make
        named = new_state(settings, new_tables(settings, ()), 0)._asdict().items()
        return {name: array.dtype for name, array in named if name not in OF_ALL_ROWS}

    def replay_row(self, settings: ArenaSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """An arena of one row. Raises MisuseError where `start` is not of one."""
        from aimbot_lab.worlds.arena.replay_row import ArenaReplayRow

        del make
        return ArenaReplayRow(settings, start)

    def renderer(self, settings: ArenaSettings) -> SceneRenderer:
        """Who draws the arena from above."""
        from aimbot_lab.worlds.arena.replay_row import ArenaRenderer

        return ArenaRenderer(settings)

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """The keys, the mouse and the gun."""
        del spec
        up, side = (0, 0) if action is None else (int(action[0]), int(action[1]))
        mouse = 0.0 if action is None else float(action[3])
        limit = float(scene.state[0].parameters[0, AT.mouse_limit])
        return (
            ArrowKeys(up=up == 1, down=up == 2, left=side == 2, right=side == 1),
            Gauge("turns", mouse / limit),
            Indicator("shoots", bool(scene.events[FIRED])),
        )

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """What the agent does; it only shoots where the gun was ready."""
        del spec
        return action_words(action, scene.events)

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of so many seconds ended; it is lost by the time limit alone."""
        return ending_words(outcome, seconds)

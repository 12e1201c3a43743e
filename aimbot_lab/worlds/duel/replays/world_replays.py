"""The duel's part in recorded episodes."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
    WorldReplays,
)
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.worlds.arena.replays.words import FIRED, action_words
from aimbot_lab.worlds.duel.replays.words import HURT, ending_words
from aimbot_lab.worlds.duel.settings import DuelSettings

if TYPE_CHECKING:
    from aimbot_lab.worlds.duel.duel import Duel


class DuelReplays(WorldReplays):
    """Matches of the duel; nothing heavy is loaded before one is recorded or played."""

    result_terms = MappingProxyType({WIN: "win", LOSS: "win"})

    def colours(self) -> Sequence[Colour]:
        """What pictures from above hold."""
        from aimbot_lab.worlds.duel.draw import COLOURS

        return COLOURS

    def row_start(self, world: Any, row: int) -> RowArrays | None:
        """The match's values, where nobody has made a decision yet."""
        from aimbot_lab.worlds.duel.replays.match_start import match_start

        duel: Duel = world.duel
        if duel.state.seats.decisions[row] > 0:
            return None
        return match_start(world.arrays(), row, duel.num_envs)

    def replay_row(self, settings: DuelSettings, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world of one match. Raises MisuseError where `start` is not of one."""
        from aimbot_lab.worlds.duel.replays.replay_row import MatchReplayRow

        return MatchReplayRow(settings, start, make)

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
        """How a match of so many seconds ended for the home agent."""
        return ending_words(outcome, seconds)

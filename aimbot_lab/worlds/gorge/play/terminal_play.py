"""Gorge Walk in a terminal."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.terminal_play import GameRequest, GameView, PlayedGame, TerminalPlay

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge

MOVES = ("up", "down", "left", "right")


class GorgeTerminalPlay(TerminalPlay):
    """A hero moved by arrow keys; nothing heavy is loaded before a game is asked for."""

    commands = MappingProxyType(
        {
            **{word: (float(number),) for number, word in enumerate(MOVES)},
            **{str(number): (float(number),) for number in range(len(MOVES))},
        }
    )
    keys = MappingProxyType(
        {**{word: word for word in MOVES}, "w": "up", "s": "down", "a": "left", "d": "right"}
    )

    def game(self, request: GameRequest) -> PlayedGame:
        """The map, the treasures and the target that are asked for."""
        from aimbot_lab.worlds.gorge.play.game import played_game

        return played_game(request)

    def view(self, world: "Gorge", *, fog: bool, ended: bool) -> GameView:
        """The map as far as it was seen; at the end all of it, with a best walk."""
        from aimbot_lab.worlds.gorge.play.view import game_view

        best = world.best_walk(0, ending=True) if ended else None
        state, maps = world.row_tables(ending=ended)
        return game_view(state, maps, view=world.settings.view, fog=fog, best=best)

    def window(self, world: "Gorge", *, ended: bool) -> Sequence[str]:
        """The window around the hero."""
        from aimbot_lab.worlds.gorge.play.view import window_signs

        state, maps = world.row_tables(ending=ended)
        return window_signs(state, maps, view=world.settings.view)

    def frame(self, world: "Gorge", *, ended: bool) -> Mapping[str, Any]:
        """Raw data as Kaiwu's Gorge Walk gives them."""
        return world.frame(0, ending=ended)

    def result(self, world: "Gorge") -> Mapping[str, float]:
        """Score, optimum and the share of it."""
        state, _ = world.row_tables(ending=True)
        score, best = float(state.score[0]), float(state.optimum[0])
        return {"score": score, "optimum": best, "share": score / best if best else 1.0}

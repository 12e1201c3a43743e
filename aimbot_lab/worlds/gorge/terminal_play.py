"""Gorge Walk in a terminal: which game a person asks for, and how it is played."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.terminal_play import GameRequest, GameView, PlayedGame, TerminalPlay
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.gorge.map_choice import chosen_maps
from aimbot_lab.worlds.gorge.maps import SHIPPED, kept_map
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.spec import DIFFICULTIES

if TYPE_CHECKING:
    from aimbot_lab.worlds.gorge.gorge import Gorge

NUMBER, LIST = re.compile(r"\d{1,9}"), re.compile(r"\d{1,9}(,\d{1,9})+,?|\d{1,9},")
OPTIONS = {"map": "--map", "treasure_num": "--treasures", "treasure_pool": "--treasures"}


def played_game(request: GameRequest) -> PlayedGame:
    """The settings and the scenario of `request`: the game itself, on the shipped map.

    Raises ConfigurationError with every fault, each at its option.
    """
    target = "score" if request.target is None else request.target
    _check_target(target, request.difficulty)
    pool, number = _treasures(request.objects, target)
    try:
        settings = GorgeSettings(
            num_envs=1,
            map=_map(request.place),
            treasure_pool=pool,
            treasure_num=number,
        )
        chosen_maps(settings)
    except ConfigurationError as error:
        raise ConfigurationError(*map(_at_option, error.faults)) from error
    return PlayedGame(settings, Scenario({target: 1.0}, _difficulty(target, request.difficulty)))


def _map(place: str | None) -> str:
    """The setting `map`, so that a replay of the game holds a file's content."""
    if place is None or place in SHIPPED:
        return place or GorgeSettings().map  # type: ignore[return-value]  # which is a name
    try:
        return kept_map(place)
    except ConfigurationError as error:
        raise ConfigurationError(*(f"env.map: {fault}" for fault in error.faults)) from error


def _check_target(target: str, difficulty: int | None) -> None:
    if target not in DIFFICULTIES:
        known = ", ".join(DIFFICULTIES)
        raise ConfigurationError(f"--target: unknown target {target!a} (valid: {known})")
    count = DIFFICULTIES[target]
    if difficulty is None:
        return
    if count == 0:
        raise ConfigurationError(f"--difficulty: {target} has no difficulties: leave it out")
    if not 1 <= difficulty <= count:
        raise ConfigurationError(f"--difficulty: must be 1 to {count} (got {difficulty})")


def _difficulty(target: str, difficulty: int | None) -> dict[str, tuple[float, ...]]:
    """Weights of one difficulty, the hardest where none is asked for."""
    count = DIFFICULTIES[target]
    if count == 0:
        return {}
    wanted = count if difficulty is None else difficulty
    return {target: tuple(float(one == wanted) for one in range(1, count + 1))}


def _treasures(text: str | None, target: str) -> tuple[tuple[int, ...] | None, int | None]:
    """The pool of sites and the number of treasures; None: the world's own."""
    if text is None:
        return None, None
    if target == "walk":
        raise ConfigurationError("--treasures: walk has no treasures: leave it out")
    plain = text.replace(" ", "")
    if LIST.fullmatch(plain):
        sites = _sites(plain)
        return sites, len(sites)
    if not NUMBER.fullmatch(plain):
        what = "must be a number, or sites as 0,3,4"
        raise ConfigurationError(f"--treasures: {what} (got {text[:40]!a})")
    if target == "collect":
        what = "collect places treasures by its difficulty; name the sites, as 0,3,4"
        raise ConfigurationError(f"--treasures: {what}")
    return None, int(plain)


def _sites(plain: str) -> tuple[int, ...]:
    return tuple(int(one) for one in plain.split(",") if one)


def _at_option(fault: str) -> str:
    """`fault`, which is about a setting, at the option that gives it."""
    key, colon, what = fault.partition(": ")
    name = key.removeprefix("env.").split(".")[0]
    return f"{OPTIONS.get(name, key)}{colon}{what}"


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
        return played_game(request)

    def view(self, world: "Gorge", *, fog: bool, ended: bool) -> GameView:
        """The map as far as it was seen; at the end all of it, with a best walk."""
        from aimbot_lab.worlds.gorge.draw import game_view

        best = world.best_walk(0, ending=True) if ended else None
        state, maps = world.row_tables(ending=ended)
        return game_view(state, maps, view=world.settings.view, fog=fog, best=best)

    def window(self, world: "Gorge", *, ended: bool) -> Sequence[str]:
        """The window around the hero."""
        from aimbot_lab.worlds.gorge.draw import window_signs

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

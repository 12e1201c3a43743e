"""Gorge Walk, as others know it: its players without a network, and play in a terminal."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.display import GameRequest, GameView, TerminalPlay
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Observations,
    Scenario,
    WorldSpec,
    columns_of,
)
from aimbot_lab.foundation.world_type import Bounds, Content, KeptFiles, MakePlayer, RandomAgent
from aimbot_lab.worlds.gorge.core.state import MOVES
from aimbot_lab.worlds.gorge.map_choice import chosen_maps, pool_of
from aimbot_lab.worlds.gorge.maps import (
    FORM,
    MAX_POINTS,
    MAX_SITES,
    SHIPPED,
    kept_map,
    listed_maps,
    map_text,
    maps_of,
)
from aimbot_lab.worlds.gorge.replays import GorgeReplays
from aimbot_lab.worlds.gorge.settings import GeneratedMaps, GorgeSettings, Move
from aimbot_lab.worlds.gorge.spec import (
    BOUNDS,
    DIFFICULTIES,
    WINDOWS,
    block_size,
    form_fault,
    gorge_spec,
    observation_blocks,
    states_fault,
    world_fault,
)
from aimbot_lab.worlds.parameters import KernelType

if TYPE_CHECKING:
    from PIL.Image import Image

    from aimbot_lab.worlds.gorge.gorge import Gorge


class Guide:
    """Plays in every row of `world` a walk of the highest score that its episode allows."""

    def __init__(self, world: "Gorge") -> None:
        self._world = world
        self._episode = np.full(world.num_envs, -1)
        self._walks: list[npt.NDArray[np.int8]] = [np.zeros(0, np.int8)] * world.num_envs

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [N, 1]; of `observations` [N, D] nothing counts: the world itself is read."""
        state = self._world.state
        for row in np.flatnonzero(state.order != self._episode).tolist():
            self._walks[row] = self._world.best_walk(row).actions
        self._episode[:] = state.order
        steps = state.steps.tolist()
        moves = [walk[step] for walk, step in zip(self._walks, steps, strict=True)]
        return np.array(moves, np.float32)[: len(observations), None]


NEIGHBOURS = ((0, 1), (0, -1), (-1, 0), (1, 0))  # dx and dz of each move
FAR = 1 << 20  # steps, more than any way in a window takes


class Explorer:
    """Walks to what it sees, and else where it has not been; ties are broken at random.

    A step towards the nearest treasure in the window that road in the window leads to, towards the
    end where `end_map` shows it, else onto a free neighbour that it has not walked on, else onto
    any. A window that the observation lacks it takes for empty.
    """

    def __init__(self, settings: GorgeSettings, seed: int) -> None:
        self._side, self._view = 2 * settings.view + 1, settings.view
        sizes = [block_size(name, settings.view) for name in settings.features]
        starts = np.cumsum([0, *sizes])
        self._first = {
            name: int(first)
            for name, first in zip(settings.features, starts, strict=False)
            if name in WINDOWS
        }
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [N, 1] for raw `observations` [N, D]."""
        road = ~self._window(observations, "obstacle_map")
        end = self._window(observations, "end_map")
        treasures = self._window(observations, "treasure_map")
        walked = self._window(observations, "walked_map")
        free = self._beside(road)
        likes = [
            free & self._towards(treasures, road & ~end),  # the end can't be walked through
            free & self._towards(end, road),
            free & ~self._beside(walked),
            free,
        ]
        wanted = np.ones_like(free)
        for like in reversed(likes):
            wanted = np.where(like.any(axis=1, keepdims=True), like, wanted)
        ties = self._random.random(wanted.shape)
        moves: Float32Array = np.where(wanted, ties, -1.0).argmax(axis=1)[:, None]
        return moves.astype(np.float32)

    def _window(self, observations: Observations, name: str) -> BoolArray:
        """[N, 2 v + 1, 2 v + 1] by [x, z]; without such a block all False."""
        shape = len(observations), self._side, self._side
        if name not in self._first:
            return np.zeros(shape, np.bool_)
        if (pictures := observations.dtype.names) is not None and name in pictures:
            shown: BoolArray = observations[name][..., 0] > 0
            return shown
        first, observations = self._first[name], columns_of(observations)
        window: BoolArray = observations[:, first : first + self._side**2].reshape(shape) > 0
        return window

    def _beside(self, window: np.ndarray) -> np.ndarray:
        """[N, 4] what a window holds beside the hero, by move."""
        v = self._view
        return np.stack([window[:, v + dx, v + dz] for dx, dz in NEIGHBOURS], axis=1)

    def _towards(self, goals: BoolArray, road: BoolArray) -> BoolArray:
        """[N, 4] moves that begin a shortest way on `road` in the window to one of `goals`."""
        steps = np.where(goals & road, 0, FAR)
        while True:
            around = np.pad(steps, ((0, 0), (1, 1), (1, 1)), constant_values=FAR)
            shifted = [
                around[:, 1 + dx : 1 + dx + self._side, 1 + dz : 1 + dz + self._side]
                for dx, dz in NEIGHBOURS
            ]
            nearer = np.where(road, np.minimum(steps, np.min(shifted, axis=0) + 1), FAR)
            nearer = np.minimum(nearer, FAR)
            if np.array_equal(nearer, steps):
                break
            steps = nearer
        beside = self._beside(steps)
        best = beside.min(axis=1, keepdims=True)
        towards: BoolArray = (beside == best) & (best < FAR)
        assert towards.shape[1] == MOVES
        return towards


NUMBER, LIST = re.compile(r"\d{1,9}"), re.compile(r"\d{1,9}(,\d{1,9})+,?|\d{1,9},")
OPTIONS = {"map": "--map", "treasure_num": "--treasures", "treasure_pool": "--treasures"}


def played_game(request: GameRequest) -> tuple[GorgeSettings, Scenario]:
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
    return settings, Scenario({target: 1.0}, _difficulty(target, request.difficulty))


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
        sites = tuple(int(one) for one in plain.split(",") if one)
        return sites, len(sites)
    if not NUMBER.fullmatch(plain):
        what = "must be a number, or sites as 0,3,4"
        raise ConfigurationError(f"--treasures: {what} (got {text[:40]!a})")
    if target == "collect":
        what = "collect places treasures by its difficulty; name the sites, as 0,3,4"
        raise ConfigurationError(f"--treasures: {what}")
    return None, int(plain)


def _at_option(fault: str) -> str:
    """`fault`, which is about a setting, at the option that gives it."""
    key, colon, what = fault.partition(": ")
    name = key.removeprefix("env.").split(".")[0]
    return f"{OPTIONS.get(name, key)}{colon}{what}"


class GorgeTerminalPlay(TerminalPlay):
    """A hero moved by arrow keys; nothing heavy is loaded before a game is asked for."""

    commands = MappingProxyType(
        {
            **{move.name: (float(move),) for move in Move},
            **{str(move.value): (float(move),) for move in Move},
        }
    )
    keys = MappingProxyType(
        {
            **{move.name: move.name for move in Move},
            "w": "up",
            "s": "down",
            "a": "left",
            "d": "right",
        }
    )

    def game(self, request: GameRequest) -> tuple[GorgeSettings, Scenario]:
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


MAX_ATTEMPTS = 8  # to find maps for evaluation


DEFAULT_SHARE = 0.4  # of obstacles on a map that is made


def _made(seed: int, numbers: Mapping[str, float]) -> str:
    """The file of a generated map; `numbers` may hold `obstacle_share` and `sites`.

    Raises ConfigurationError where no map with that share of obstacles is found.
    """
    from aimbot_lab.worlds.gorge.generated_maps import generated_maps

    (grid,) = generated_maps(
        1,
        seed=seed,
        obstacle_share=numbers.get("obstacle_share", DEFAULT_SHARE),
        sites=int(numbers.get("sites", MAX_SITES)),
    )
    return map_text(grid)


def _drawn(paths: Sequence[Path]) -> "Image":
    from aimbot_lab.worlds.gorge.draw import draw_map_sheet

    return draw_map_sheet(maps_of(paths))


class GorgeType(KernelType):
    """Gorge Walk."""

    name = "gorge"
    settings = GorgeSettings
    files = KeptFiles(
        key="map",
        form=FORM,
        read=lambda entries: kept_map(*entries),
        listed=listed_maps,
        count=lambda paths: len(maps_of(paths)),
        draw=_drawn,
        single=True,
        is_own=lambda entry: bool(entry) and entry not in SHIPPED,
        make=_made,
    )
    replays = GorgeReplays()
    terminal = GorgeTerminalPlay()
    shape_keys = ("features", "view")
    bounding_keys = ("map", "max_steps", "treasure_pool")
    gymnasium_ids = MappingProxyType(
        {
            "aimbot_lab/GorgeWalk-v0": {"walk": 1.0},
            "aimbot_lab/GorgeCollect-v0": {"collect": 1.0},
            "aimbot_lab/GorgeScore-v0": {"score": 1.0},
        }
    )

    def spec(self, settings: GorgeSettings) -> WorldSpec:
        """The shape of a world with `settings`.

        Raises ConfigurationError with every fault of its map, and of the settings with that.
        """
        chosen_maps(settings)
        return gorge_spec(settings)

    def make(self, settings: GorgeSettings) -> BatchWorld:
        """A world with `settings`, not yet reset; it loads numba."""
        from aimbot_lab.worlds.gorge.gorge import Gorge

        return Gorge(settings)

    def targets(self, settings: GorgeSettings | None) -> Mapping[str, int]:
        """To the end, with every treasure, or with a share of the best score."""
        del settings
        return DIFFICULTIES

    def hardest_target(self) -> str:
        """The game itself."""
        return "score"

    def baselines(self, settings: GorgeSettings) -> Mapping[str, MakePlayer]:
        """A random player, one that explores what it sees, and one that plays best walks."""
        return {
            "random": lambda world, seed: RandomAgent(world.spec, seed),
            "explorer": lambda _world, seed: Explorer(settings, seed),
            "optimum": lambda world, _seed: Guide(cast("Gorge", world)),
        }

    def observation_size(self, settings: GorgeSettings) -> int:
        """Numbers of an observation."""
        return sum(block.columns for block in observation_blocks(settings))

    def content(self, settings: GorgeSettings) -> Content:
        """The map, or the generated ones together."""
        maps = chosen_maps(settings)
        if len(maps) == 1:
            return Content("map", maps[0].name, maps[0].content_hash)
        together = sha256("".join(one.content_hash for one in maps).encode())
        return Content("map", f"{len(maps)} generated", together.hexdigest())

    def evaluated(self, settings: GorgeSettings) -> GorgeSettings:
        """As many other maps of the generator, of which no training with `settings` meets one."""
        if not isinstance(settings.map, GeneratedMaps):
            return settings
        met = {one.content_hash for one in chosen_maps(settings)}
        fault: Exception | None = None
        for attempt in range(MAX_ATTEMPTS):
            seed = derive_seed(settings.map.generate.seed, "evaluation", attempt)
            generate = replace(settings.map.generate, seed=seed)
            other = replace(settings, map=GeneratedMaps(generate=generate))
            try:
                if met.isdisjoint(one.content_hash for one in chosen_maps(other)):
                    return other
            except ConfigurationError as error:  # a limit too short for one of them
                fault = error
        raise fault or ConfigurationError("env.map.generate: there are no other maps")

    def parameters(self, settings: GorgeSettings | None) -> Mapping[str, Bounds]:
        """Every number that an episode depends on."""
        del settings
        return BOUNDS

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: GorgeSettings | None
    ) -> str | None:
        """Whether the value lies in the parameter's bounds and those of `settings` and map."""
        if settings is None:
            return form_fault(name, value)
        try:
            maps = chosen_maps(settings)
        except ConfigurationError:  # which is reported by itself
            return form_fault(name, value)
        return world_fault(name, value, settings, maps, pool_of(settings, maps))

    def reward_bound(self, settings: GorgeSettings) -> float:
        """The most that one term can earn in a step."""
        weights, score = settings.rewards, settings.score
        return max(
            abs(weights.treasure) * MAX_POINTS,
            abs(weights.finish) * score.end,
            abs(weights.step_score) * score.step * settings.max_steps,
            *(abs(weights.step_penalty), abs(weights.bump), abs(weights.revisit)),
            *(abs(weights.distance), abs(weights.treasure_distance)),
            *(abs(weights.win), abs(weights.lose)),
        )

    def states_fault(self, settings: GorgeSettings) -> str | None:
        """A table needs one map, and to see where the hero is and which treasures are left."""
        return states_fault(settings)


GORGE = GorgeType()

"""Gorge Walk's shape as every adapter and policy sees it."""

from collections.abc import Iterator
from math import atan2, pi, sqrt

import numpy as np

from aimbot_lab.foundation.intervals import Measure
from aimbot_lab.foundation.world import Int64Array, ObservationBlock, StateTable, WorldSpec
from aimbot_lab.worlds.episode_log import own_columns
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.map_choice import chosen_maps, pool_of
from aimbot_lab.worlds.gorge.settings import GeneratedMaps, GorgeSettings

WINDOWS = ("obstacle_map", "treasure_map", "end_map", "walked_map")
SIZES = {
    "position": 2,
    "pos_norm": 2,
    "pos_polar": 2,
    "treasure": core.SITES,
    "location_memory": core.CELLS,
    "pos_row": core.SIDE,
    "pos_col": core.SIDE,
    "list_treasure": core.SITES,
    "steps_left": 1,
}


def block_size(name: str, view: int) -> int:
    """Numbers of the block `name`."""
    return int((2 * view + 1) ** 2) if name in WINDOWS else SIZES[name]


def is_picture(name: str, settings: GorgeSettings) -> bool:
    """Whether the block `name` is shown as a picture."""
    return name in WINDOWS and settings.windows == "pictures"


def picture_columns(settings: GorgeSettings) -> dict[str, Int64Array]:
    """Where kernels write the pixels [S, S, 1] of each picture, by column and row of the map."""
    side, table = 2 * settings.view + 1, block_table(settings)
    return {
        name: first + np.arange(side * side).reshape(side, side, 1)
        for name, first in zip(settings.features, table[:, 1].tolist(), strict=True)
        if is_picture(name, settings)
    }


def columns(settings: GorgeSettings) -> Iterator[tuple[str, float, float]]:
    """Every column of an observation, in order: name, low, high."""
    for name in settings.features:
        if is_picture(name, settings):
            continue
        high = {"position": core.SIDE - 1, "steps_left": settings.max_steps}.get(name, 1)
        for index in range(block_size(name, settings.view)):
            yield (name if name == "steps_left" else f"{name}_{index}"), 0.0, float(high)


def observation_blocks(settings: GorgeSettings) -> tuple[ObservationBlock, ...]:
    """The blocks of an observation; pictures have one channel."""
    side = 2 * settings.view + 1
    return tuple(
        ObservationBlock(name, "image", (side, side, 1))
        if is_picture(name, settings)
        else ObservationBlock(name, "vector", (block_size(name, settings.view),))
        for name in settings.features
    )


def block_table(settings: GorgeSettings) -> core.Ints:
    """[F, 2] code of each block, and the first column that kernels write it to."""
    sizes = [block_size(name, settings.view) for name in settings.features]
    codes = [core.BLOCKS.index(name) for name in settings.features]
    return np.column_stack([codes, np.cumsum([0, *sizes[:-1]])]).astype(np.int64)


def polar_table() -> core.Floats32:
    """[CELLS, 2] of `pos_polar`: sqrt(x^2 + z^2) / (64 sqrt 2), and atan2(z, x) / (pi / 2)."""
    cells = [divmod(cell, core.SIDE) for cell in range(core.CELLS)]
    longest = core.SIDE * sqrt(2.0)
    polar = [(sqrt(x * x + z * z) / longest, atan2(z, x) / (pi / 2)) for x, z in cells]
    return np.array(polar, np.float32)


TARGETS = {"walk": core.WALK, "collect": core.COLLECT, "score": core.SCORE}
DIFFICULTIES = {"walk": core.DIFFICULTY_COUNT, "collect": core.DIFFICULTY_COUNT, "score": 0}
ABILITIES = frozenset({"snapshot", "masks", "draw", "replay", "paired", "parts"})
RESULT_COLUMNS = ("steps", "bumps", "treasures", "placed", "score", "optimum")
OWN_COLUMNS = own_columns(core.GorgeEpisodeLog)
EPISODE_COLUMNS = (*RESULT_COLUMNS, *(one for one in OWN_COLUMNS if one not in RESULT_COLUMNS))
MEASURES = (
    Measure("score", "score", "score", training="score/total", evaluation="eval/score"),
    Measure(
        "share",
        "score",
        "share of the optimum [95 %]",
        over="optimum",
        interval=True,
        decimals=3,
        training="score/share",
        evaluation="eval/share",
    ),
    Measure("arrived", "arrived", "arrived", decimals=3, training="score/finished"),
    Measure("treasures", "treasures", "treasures", beside="placed", training="score/treasures"),
    Measure("placed", "placed"),
    Measure("treasure_score", "treasure_score", training="score/treasure_score"),
    Measure("steps", "steps", training="score/steps"),
    Measure("median_steps", "steps", "median steps", only="arrived", median=True, decimals=0),
    Measure("bumps", "bumps", "bumps", training="score/bumps"),
)
PLACES = (("position",), ("pos_row", "pos_col"))  # blocks that tell the hero's cell, either of them
LEFT = ("list_treasure", "treasure")  # blocks of which each tells what is left


def gorge_spec(settings: GorgeSettings) -> WorldSpec:
    """Observation columns with their ranges, moves, targets and reward terms."""
    names, lows, highs = zip(*columns(settings), strict=True)
    return WorldSpec(
        observation_names=names,
        observation_low=np.array(lows, np.float32),
        observation_high=np.array(highs, np.float32),
        branches=(core.MOVES,),
        continuous=0,
        continuous_limit=1.0,
        targets=TARGETS,
        difficulties=DIFFICULTIES,
        reward_terms=core.REWARD_TERMS,
        parameters=core.PARAMETERS,
        action_names=("move",),
        time_unit="steps",
        max_steps=settings.max_steps,
        abilities=ABILITIES,
        episode_columns=EPISODE_COLUMNS,
        measures=MEASURES,
        result_columns=RESULT_COLUMNS,
        blocks=observation_blocks(settings),
        states=None if states_fault(settings) else state_table(settings),
    )


def states_fault(settings: GorgeSettings) -> str | None:
    """What `settings` lack for numbered states, as what a table needs; None: nothing."""
    if isinstance(settings.map, GeneratedMaps) and settings.map.generate.count > 1:
        return f"one map (env.map generates {settings.map.generate.count})"
    seen = set(settings.features)
    if not any(seen.issuperset(blocks) for blocks in PLACES) or not seen.intersection(LEFT):
        return "the features position and list_treasure"
    return None


def state_table(settings: GorgeSettings) -> StateTable:
    """A state for each road cell with each set of treasures of the pool that can be left."""
    (grid,) = chosen_maps(settings)
    pool = pool_of(settings, (grid,))
    sets = 1 << len(pool)
    first = _first_columns(settings)
    columns, places = _cell_columns(first)
    left = next(first[name] for name in LEFT if name in first)
    road = ~grid.walls.ravel()
    return StateTable(
        size=int(road.sum()) * sets,
        columns=np.concatenate([columns, left + np.array(pool, np.int64)]),
        place_weights=np.concatenate([places, np.zeros(len(pool), np.int64)]),
        rest_weights=np.concatenate([np.zeros_like(places), 1 << np.arange(len(pool))]),
        first_states=np.where(road, (np.cumsum(road) - 1) * sets, -1),
    )


def _first_columns(settings: GorgeSettings) -> dict[str, int]:
    """The first column of each block."""
    sizes = [block.columns for block in observation_blocks(settings)]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return dict(zip(settings.features, starts, strict=True))


def _cell_columns(first: dict[str, int]) -> tuple[core.Ints, core.Ints]:
    """Columns that tell the cell, and their weights in its number."""
    if "position" in first:
        return first["position"] + np.arange(2), np.array([core.SIDE, 1])
    line = np.arange(core.SIDE)
    columns = np.concatenate([first["pos_row"] + line, first["pos_col"] + line])
    return columns, np.concatenate([core.SIDE * line, line])

"""Gorge Walk's spec, and the tables of a scenario."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from math import atan2, pi, sqrt
from types import MappingProxyType

import numpy as np

from aimbot_lab.foundation.episodes import Measure, own_columns
from aimbot_lab.foundation.settings import ParameterValue, as_parameter, extremes
from aimbot_lab.foundation.world import (
    Int64Array,
    ObservationBlock,
    Scenario,
    StateTable,
    WorldSpec,
)
from aimbot_lab.foundation.world_type import Bounds
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.core.state import GorgeScenarioTables, SamplerTables
from aimbot_lab.worlds.gorge.map_choice import (
    Maps,
    chosen_maps,
    longest_way,
    pool_of,
    too_short,
    treasure_count,
)
from aimbot_lab.worlds.gorge.settings import (
    MAX_LIMIT,
    MAX_POINTS,
    MAX_REWARD,
    GeneratedMaps,
    GorgeSettings,
)
from aimbot_lab.worlds.parameters import (
    OPEN_BOUND,
    is_unbounded,
    level_weights,
    sampler_fields,
    scenario_values,
    shown,
    target_number,
    target_weights,
    value_fault,
)

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


@cache  # one for all worlds: no kernel writes to it
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


BOUNDS = MappingProxyType(
    {
        **{f"rewards.{term}": Bounds(-MAX_REWARD, MAX_REWARD, False) for term in core.REWARD_TERMS},
        "max_steps": Bounds(1, MAX_LIMIT, True),
        "treasure_num": Bounds(0, core.SITES, True),
        "win_share": Bounds(OPEN_BOUND, 1, False),
        "random_start": Bounds(0, 1, True),
        "score.end": Bounds(0, MAX_POINTS, False),
        "score.step": Bounds(0, MAX_POINTS, False),
    }
)


def parameter_values(settings: GorgeSettings, pool: Sequence[int]) -> dict[str, float]:
    """Every number that a scenario may change, by its name, as `settings` give it."""
    return {
        **{f"rewards.{term}": weight for term, weight in asdict(settings.rewards).items()},
        "max_steps": float(settings.max_steps),
        "treasure_num": float(treasure_count(settings, pool)),
        "win_share": settings.win_share,
        "random_start": float(settings.random_start),
        "score.end": settings.score.end,
        "score.step": settings.score.step,
    }


def bounds_in(settings: GorgeSettings, maps: Maps, pool: Sequence[int]) -> dict[str, Bounds]:
    """The values that each parameter takes in a world with `settings` on `maps`."""
    return {
        **BOUNDS,
        "max_steps": Bounds(longest_way(maps)[0], settings.max_steps, True),
        "treasure_num": Bounds(0, len(pool), True),
    }


def form_fault(name: str, value: ParameterValue) -> str | None:
    """What is wrong with giving parameter `name` that value in any world; None: nothing is."""
    return value_fault(value, BOUNDS[name])


def world_fault(
    name: str, value: ParameterValue, settings: GorgeSettings, maps: Maps, pool: Sequence[int]
) -> str | None:
    """The same in a world with `settings` on `maps`."""
    fault = form_fault(name, value)
    if fault is not None or is_unbounded(as_parameter(value)):
        return fault
    low, high = extremes(as_parameter(value))
    if name == "treasure_num" and high > len(pool):
        return f"must be at most {len(pool)}, the sites in the pool (got {shown(low, high)})"
    if name == "max_steps":
        longest, map_name = longest_way(maps)
        if low < longest:
            return f"{too_short(longest, map_name)} (got {shown(low, high)})"
        if high > settings.max_steps:
            limit = f"{settings.max_steps:g}"
            return f"must not exceed env.max_steps, which bounds the observation ({limit})"
    return None


def scenario_tables(scenario: Scenario, *, number: int) -> GorgeScenarioTables:
    """The targets and difficulties of the next episodes, as scenario `number`.

    Raises ConfigurationError for an unknown target, and weights that leave nothing to draw.
    """
    targets = target_weights(scenario.targets, TARGETS, core.TARGET_COUNT)
    difficulty = np.ones((core.TARGET_COUNT, core.DIFFICULTY_COUNT))
    for name, weights in scenario.difficulty.items():
        code = target_number(name, TARGETS)
        difficulty[code] = level_weights(name, weights, DIFFICULTIES[name])
    return GorgeScenarioTables(np.array([number]), targets, difficulty)


def sampler_tables(
    given: Mapping[str, ParameterValue], settings: GorgeSettings, maps: Maps, pool: Sequence[int]
) -> SamplerTables:
    """What draws each parameter in a world with `settings` on `maps`: as `given`, else as usual.

    Raises ConfigurationError for an unknown parameter and a value that one does not take.
    """
    values = scenario_values(
        given,
        parameter_values(settings, pool),
        fault=lambda name, value: world_fault(name, value, settings, maps, pool),
    )
    bounds = bounds_in(settings, maps, pool)
    return SamplerTables(**sampler_fields(values, bounds, core.PARAMETERS))

"""What the kernels read and write: arrays with one row per environment, and shared tables."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.row_numbers import RowNumbers

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint16]
Sets = npt.NDArray[np.uint16]  # of treasure sites, bits by config_id

SIDE = 64  # cells along each side of the grid
CELLS = SIDE * SIDE
SITES = 10  # most treasure sites of a map
MAX_VIEW = 10  # cells that the window reaches to each side
PADDED = SIDE + 2 * MAX_VIEW  # columns of cells, with those beyond the grid
FULL_MEMORY = 10  # arrivals at a cell from which its memory is 1

WALK, COLLECT, SCORE = range(3)
TARGET_COUNT = 3
DIFFICULTY_COUNT = 5
COLLECT_PERCENT = (10, 20, 30, 50, 100)  # of the pool, by difficulty
QUARTERS = 4  # of the shortest way, within which easier walks begin
TOLERANCE = 1e-9  # of a comparison of scores

MOVES = 4
UP, DOWN, LEFT, RIGHT = range(MOVES)

REWARD_TERMS = (
    "treasure",
    "finish",
    "step_score",
    "step_penalty",
    "bump",
    "revisit",
    "distance",
    "treasure_distance",
    "win",
    "lose",
)
(
    TREASURE,
    FINISH,
    STEP_SCORE,
    STEP_PENALTY,
    BUMP,
    REVISIT,
    DISTANCE,
    TREASURE_DISTANCE,
    WIN,
    LOSE,
) = range(len(REWARD_TERMS))

PARAMETERS = (
    *(f"rewards.{term}" for term in REWARD_TERMS),
    "max_steps",
    "treasure_num",
    "win_share",
    "random_start",
    "score.end",
    "score.step",
)
# A reward's parameter has the index of its term.
MAX_STEPS, TREASURE_NUM, WIN_SHARE, RANDOM_START, END_SCORE, STEP_FACTOR = range(
    len(REWARD_TERMS), len(PARAMETERS)
)
OF_SCORE = (MAX_STEPS, END_SCORE, STEP_FACTOR)  # parameters that the best score depends on

BLOCKS = (
    "position",
    "pos_norm",
    "pos_polar",
    "treasure",
    "obstacle_map",
    "treasure_map",
    "end_map",
    "location_memory",
    "pos_row",
    "pos_col",
    "walked_map",
    "list_treasure",
    "steps_left",
)
(
    POSITION,
    POS_NORM,
    POS_POLAR,
    TREASURE_LIST,
    OBSTACLE_MAP,
    TREASURE_MAP,
    END_MAP,
    LOCATION_MEMORY,
    POS_ROW,
    POS_COL,
    WALKED_MAP,
    LIST_TREASURE,
    STEPS_LEFT,
) = range(len(BLOCKS))


class GorgeState(NamedTuple):
    """Everything that changes; a copy of these arrays is a snapshot of the world.

    Cells are (x, z), or as one number SIDE * x + z. Sets of treasure sites are bits by config_id.
    """

    x: Ints  # [B] of the hero
    z: Ints  # [B]
    map: Ints  # [B] index of the episode's map
    start: Ints  # [B] cell where the episode began
    target: Ints  # [B] code of the target
    difficulty: Ints  # [B] 1 to 5, 0 where the target has none
    steps: Ints  # [B] made in this episode
    bumps: Ints  # [B] of these
    placed: Ints  # [B] set of sites that had a treasure at the beginning
    left: Ints  # [B] set of sites whose treasure is there to take
    score: Floats  # [B] total
    step_score: Floats  # [B] of the last step
    optimum: Floats  # [B] best total of the episode; NaN until it is worked out
    terms: Floats  # [B, T] sum of each reward term over the episode
    arrivals: Counts  # [B, CELLS] at each cell, the beginning included
    walked: Words  # [B, PADDED] bit z of column x + MAX_VIEW: the cell was arrived at
    parameters: Floats  # [B, P] numbers in force in this episode
    streams: Words  # [B] state of the random stream
    sampler_key: Words  # [1] seed of the samplers that have none of their own
    episode: Ints  # [B] episodes begun in the row since the reset
    order: Ints  # [B] rank of the episode by its beginning
    scenario: Ints  # [B] number of the scenario the episode was drawn from
    clock: Ints  # [1] steps of the whole batch since the reset


class MapTables(NamedTuple):
    """What is known of M maps; no kernel writes it."""

    road: Words  # [M, PADDED] bit z of column x + MAX_VIEW: no obstacle; 0 beyond the grid
    start: Ints  # [M] cell
    end: Ints  # [M] cell
    sites: Ints  # [M, SITES] cell of each site, -1 where the map has no such site
    points: Floats  # [M, SITES] of the treasure at each site
    on: Sets  # [M, CELLS] sites on each cell
    near: Sets  # [M, CELLS] sites within the window around each cell
    to_end: Ints32  # [M, CELLS] steps of the shortest way to the end, -1 without one
    to_site: Ints32  # [M, SITES, CELLS] the same to a site, never through the end
    walk_cells: Ints32  # [M, CELLS] cells with a way to the end, the nearest first
    walk_first: Ints  # [M, QUARTERS + 1] where those of each quarter of the way begin and end
    free_cells: Ints32  # [M, CELLS] cells at which a random start may be
    free_count: Ints  # [M] how many these are


class SamplerTables(NamedTuple):
    """Constants, or what draws each parameter."""

    sampler: Ints  # [P] CONSTANT, UNIFORM, GAUSSIAN or RANGES
    sampler_values: Floats  # [P, 2] constant; low and high; mean and standard deviation
    sampler_ranges: Floats  # [P, I, 2] low and high of each interval of RANGES
    sampler_range_count: Ints  # [P]
    sampler_seed: Words  # [P] seed of its own
    sampler_seeded: Bools  # [P] whether it has one
    bounds: Floats  # [P, 2] lowest and highest value that a parameter takes
    whole: Bools  # [P] whether it takes whole numbers alone


class GorgeScenarioTables(NamedTuple):
    """What the next episodes are drawn from."""

    number: Ints  # [1] of the scenario, counted from 1; 0: none yet
    target_weights: Floats  # [TARGET_COUNT]
    difficulty_weights: Floats  # [TARGET_COUNT, DIFFICULTY_COUNT]


class GorgeTables(NamedTuple):
    """What all rows share; kernels write none of it."""

    maps: MapTables
    scenario: GorgeScenarioTables
    samplers: SamplerTables
    optima: Floats  # [M, 2**SITES] best total from a map's start, by placed set; NaN: unknown
    pool: Ints  # [K] sites at which treasures may be
    blocks: Ints  # [F, 2] code of each observation block, and its first column
    polar: Floats32  # [CELLS, 2] length and angle of each cell, scaled to 0 to 1
    reach: int  # cells that the window extends to each side; `view` is a word of numba
    decay: bool  # whether treasures lose worth with the steps
    rows: RowNumbers


class GorgeEpisodeLog(NamedTuple):
    """How the last episode of each row ended, kept from before its reset."""

    won: Bools  # [B]
    arrived: Bools  # [B]
    target: Ints  # [B]
    difficulty: Ints  # [B]
    steps: Ints  # [B]
    bumps: Ints  # [B]
    treasures: Ints  # [B] taken
    placed: Ints  # [B] how many there were
    score: Floats  # [B]
    treasure_score: Floats  # [B] of that, what treasures gave
    optimum: Floats  # [B]
    order: Ints  # [B]
    scenario: Ints  # [B]
    terms: Floats  # [B, T]

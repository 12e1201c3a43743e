"""What the kernels read and write: arrays with one row per environment, and shared tables."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.row_numbers import RowNumbers

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

FREE, GOTO, ATTACK, DEFENCE, STAY = range(5)
TARGET_COUNT = 5
DIFFICULTY_COUNT = 5
BLOCK_SIZE = 10.0  # m
MAX_ENEMIES = 6  # of a target block
MAX_PLACED = 100  # enemies that Free places, and bystanders
WALL_HIT, NO_HIT = -1, -2  # ray_hit where no enemy is hit
BRANCHES = (3, 3, 2)  # of an action: vertical, horizontal, attack
TAG_KINDS = 3  # columns of a one-hot tag: wall, enemy, player
ENEMY_SLOTS = 6  # enemies that an observation shows
SLOT_FEATURES = 4  # columns of each: ahead, right, hits left, is a target
PERCEPTION = 5  # columns of a ray as ML-Agents tells it
SPIN_UNIT = 2.0**-40  # of the mouse action, summed in whole units so that it never drifts

REWARD_TERMS = (
    "non_target_hit",
    "target_hit",
    "move_penalty",
    "spin_penalty",
    "win",
    "lose",
    "facing",
    "distance",
    "in_area",
    "suppressive",
    "facing_area",
)
(
    NON_TARGET_HIT,
    TARGET_HIT,
    MOVE_PENALTY,
    SPIN_PENALTY,
    WIN,
    LOSE,
    FACING,
    DISTANCE,
    IN_AREA,
    SUPPRESSIVE,
    FACING_AREA,
) = range(len(REWARD_TERMS))

PARAMETERS = (
    *(f"rewards.{term}" for term in REWARD_TERMS),
    "agent_radius",
    "enemy_radius",
    "decision_period",
    "fixed_timestep",
    "time_limit",
    "move_speed",
    "gun_cooldown",
    "gun_range",
    "enemy_hits_to_kill",
    "free_enemies",
    "mouse_limit",
    "mouse_factor",
    "goto_win_radius",
    "block_gap_to_agent",
    "block_gap_to_walls",
    "spin_threshold",
    "spin_rate",
    "facing_distance",
    "floor_size",
    "line_stopped_by_obstacles",
    "rays.range",
    "rays.view_angle",
    "rays.middle_share",
    "bystanders",
    "recall_seconds",
)
# A reward's parameter has the index of its term.
(
    AGENT_RADIUS,
    ENEMY_RADIUS,
    DECISION_PERIOD,
    FIXED_TIMESTEP,
    TIME_LIMIT,
    MOVE_SPEED,
    GUN_COOLDOWN,
    GUN_RANGE,
    ENEMY_HITS_TO_KILL,
    FREE_ENEMIES,
    MOUSE_LIMIT,
    MOUSE_FACTOR,
    GOTO_WIN_RADIUS,
    BLOCK_GAP_TO_AGENT,
    BLOCK_GAP_TO_WALLS,
    SPIN_THRESHOLD,
    SPIN_RATE,
    FACING_DISTANCE,
    FLOOR_SIZE,
    LINE_STOPPED_BY_OBSTACLES,
    RAY_RANGE,
    VIEW_ANGLE,
    MIDDLE_SHARE,
    BYSTANDERS,
    RECALL_SECONDS,
) = range(len(REWARD_TERMS), len(PARAMETERS))


class ArenaState(NamedTuple):
    """Everything that changes; a copy of these arrays is a snapshot of the world."""

    position: Floats  # [B, 2] m, x and z of the agent
    yaw: Floats  # [B] rad in (-pi, pi], 0 along +z, positive to the right
    ahead: Floats  # [B, 2] sine and cosine of the yaw, worked out once a decision
    target: Ints  # [B] type code
    difficulty: Ints  # [B] 1 to 5, 0 where the target has none
    preset: Ints  # [B] index into the preset tables, -1 where none
    block: Floats  # [B, 2] m, corner of the target block
    block_turns: Ints  # [B] quarter turns of the block
    fire_base: Floats  # [B, 3] m, centre x, centre z, diameter; 0 where none
    obstacles: Floats  # [B, K, 4] m, min x, min z, max x, max z
    obstacle_count: Ints  # [B]
    enemies: Floats  # [B, E, 2] m, x and z
    enemy_hits_left: Ints  # [B, E] 0: down
    enemy_is_target: Bools  # [B, E] whether it counts in Attack, settled where it is placed
    enemy_count: Ints  # [B]
    decisions: Ints  # [B] decisions made in this episode
    gun_ticks: Ints  # [B] physics ticks until the gun is ready
    spin_turns: Ints  # [B, W] SPIN_UNIT, last mouse actions in a ring
    spin_sum: Ints  # [B] SPIN_UNIT, their sum; times mouse_factor it is the net turn
    terms: Floats  # [B, T] sum of each reward term over the episode
    ray_cos: Floats32  # [B, R padded] of each ray's angle to the view's centre line
    ray_sin: Floats32  # [B, R padded] positive to the right
    view_edge: Floats  # [B, 2] cosine and sine of half the view angle
    ray_distance: Floats32  # [B, R padded] m to the nearest hit, before the range is applied
    ray_hit: Ints32  # [B, R padded] index of the enemy that was hit, WALL_HIT or NO_HIT
    parameters: Floats  # [B, P] numbers in force in this episode
    streams: Words  # [B] state of the random stream
    sampler_key: Words  # [1] seed of the samplers that have none of their own
    episode: Ints  # [B] episodes begun in the row since the reset
    history: Floats32  # [B, (S - 1) * D] earlier observations of the episode, oldest first
    order: Ints  # [B] rank of the episode by its beginning
    scenario: Ints  # [B] number of the scenario the episode was drawn from
    clock: Ints  # [1] steps of the whole batch since the reset


class PresetTables(NamedTuple):
    """All target blocks, sorted by target and difficulty."""

    kind_first: Ints  # [targets, difficulties + 1] first preset of each kind
    kind_count: Ints  # [targets, difficulties + 1]
    obstacles: Floats  # [M, K, 4] m, in the block's frame
    obstacle_count: Ints  # [M]
    enemies: Floats  # [M, E, 2] m, in the block's frame
    enemy_count: Ints  # [M]
    fire_base: Floats  # [M, 3] m, centre x, centre z, diameter


class ScenarioTables(NamedTuple):
    """What the next episodes are drawn from."""

    number: Ints  # [1] of the scenario, counted from 1
    target_weights: Floats  # [targets]
    difficulty_weights: Floats  # [targets, difficulties]
    sampler: Ints  # [P] CONSTANT, UNIFORM, GAUSSIAN or RANGES
    sampler_values: Floats  # [P, 2] constant; low and high; mean and standard deviation
    sampler_ranges: Floats  # [P, I, 2] low and high of each interval of RANGES
    sampler_range_count: Ints  # [P]
    sampler_seed: Words  # [P] seed of its own
    sampler_seeded: Bools  # [P] whether it has one
    bounds: Floats  # [P, 2] lowest and highest value that a parameter takes
    whole: Bools  # [P] whether it takes whole numbers alone


class CameraTables(NamedTuple):
    """The picture that an agent sees; no pixels where it sees none."""

    width: int  # pixels
    height: int  # pixels
    channels: int  # 1: grey, 3: red, green, blue; 0: no picture
    half_width: float  # tangent of half the angle from edge to edge


class ArenaTables(NamedTuple):
    """What all rows share and no kernel writes."""

    presets: PresetTables
    scenario: ScenarioTables
    middle_rays: int
    side_rays: int  # on each side
    one_hot: bool  # coding of ray tags
    enemy_columns: int  # of an observation, before its rays; 0: enemies are no units of it
    recalls: bool  # whether any row may have an episode with recall_seconds
    perception: bool  # whether rays are told as ML-Agents does
    camera: CameraTables
    rows: RowNumbers


LOST, WON = -1, 1  # as LOSS and WIN of foundation.episodes


class EpisodeLog(NamedTuple):
    """How the last episode of each row ended, kept from before its reset."""

    outcome: Int8s  # [B] LOST or WON
    target: Ints  # [B]
    difficulty: Ints  # [B]
    length: Ints  # [B] decisions
    seconds: Floats  # [B]
    order: Ints  # [B]
    scenario: Ints  # [B]
    terms: Floats  # [B, T]


class ThreadWorkspace(NamedTuple):
    """What one thread works with."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    scratch: Floats32  # [4, R padded] of its own

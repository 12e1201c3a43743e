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

DIFFICULTY_COUNT = 5
BLOCK_SIZE = 10.0  # m
MAX_ENEMIES = 6  # of a target block
MAX_PLACED = 100  # enemies that Free places, and bystanders
EYE_HEIGHT, WALL_HEIGHT, BODY_HEIGHT = 1.5, 3.0, 2.0  # m, of pictures, films and pages
WALL_HIT, NO_HIT = -1, -2  # ray_hit where no enemy is hit
BRANCHES = (3, 3, 2)  # of an action: vertical, horizontal, attack
CHOICE_WORDS = ("stay", "ahead", "back"), ("stay", "right", "left"), ("hold", "shoot")
TAG_KINDS = 3  # columns of a one-hot tag: wall, enemy, player
ENEMY_SLOTS = 6  # enemies that an observation shows
SLOT_FEATURES = 4  # columns of each: ahead, right, hits left, is a target
PERCEPTION = 5  # columns of a ray as ML-Agents tells it
SPIN_UNIT = 2.0**-40  # of the mouse action, summed in whole units so that it never drifts


class Targets(NamedTuple):
    """Type code of each target; a new one goes last, since states and agents hold the codes."""

    free: int
    goto: int
    attack: int
    defence: int  # reserved, nothing draws it
    stay: int


TARGET = Targets(*range(len(Targets._fields)))
TARGETS = {name: code for name, code in TARGET._asdict().items() if code != TARGET.defence}
OF_BLOCKS = (TARGET.goto, TARGET.attack)  # targets of which each episode has a target block
TARGET_COUNT = len(TARGET)
TARGET_CODES = tuple(TARGETS.values())


class Parameters(NamedTuple):
    """Place of each number that an episode has in force, by its setting's name.

    `rewards_win` is the weight `rewards.win`: each weight declares a reward term, whose place among
    the terms is its rank among the weights. A new parameter goes last, whatever it is: episodes
    draw parameters by their place, and snapshots hold them by it.
    """

    rewards_non_target_hit: int
    rewards_target_hit: int
    rewards_move_penalty: int
    rewards_spin_penalty: int
    rewards_win: int
    rewards_lose: int
    rewards_facing: int
    rewards_distance: int
    rewards_in_area: int
    rewards_suppressive: int
    rewards_facing_area: int
    agent_radius: int
    enemy_radius: int
    decision_period: int
    fixed_timestep: int
    time_limit: int
    move_speed: int
    gun_cooldown: int
    gun_range: int
    enemy_hits_to_kill: int
    free_enemies: int
    mouse_limit: int
    mouse_factor: int
    goto_win_radius: int
    block_gap_to_agent: int
    block_gap_to_walls: int
    spin_threshold: int
    spin_rate: int
    facing_distance: int
    floor_size: int
    line_stopped_by_obstacles: int
    rays_range: int
    rays_view_angle: int
    rays_middle_share: int
    bystanders: int
    recall_seconds: int


AT = Parameters(*range(len(Parameters._fields)))
SECTIONS = ("rewards", "rays")  # of the settings
PARAMETERS = tuple(
    name.replace("_", ".", 1) if name.startswith(SECTIONS) else name for name in AT._fields
)
"""Their names as settings and lessons have them."""
REWARD_TERMS = tuple(
    name.removeprefix("rewards.") for name in PARAMETERS if name.startswith("rewards.")
)
TERM_OF = np.array([name.startswith("rewards.") for name in PARAMETERS]).cumsum() - 1
"""[P] Place among the terms of the one whose weight a parameter is."""


class Counts(NamedTuple):
    """Place in `ArenaState.terms` of each count over an episode, such as `shots: int`.

    A kernel adds to it; it begins at 0, and is an episode column of its name. The arena's spec
    names no `result_columns`, so that its result line ends with it, too: `|shots=2.0`.
    """


COUNT = Counts(*range(len(REWARD_TERMS), len(REWARD_TERMS) + len(Counts._fields)))
SUMS = len(REWARD_TERMS) + len(COUNT)


class OwnColumns(NamedTuple):
    """Place of each of the agent's own numbers in an observation.

    It lies between 0 and 1 unless `spec.own_number_columns` says otherwise."""

    target: int  # type code
    fire_base_x: int  # m
    fire_base_y: int
    fire_base_z: int
    fire_base_diameter: int  # m
    in_fire_base: int  # 0 or 1
    time_left: int  # s
    gun_ready: int  # 0 or 1
    agent_x: int  # m
    agent_y: int
    agent_z: int
    cos_yaw: int
    sin_yaw: int


OWN = OwnColumns(*range(len(OwnColumns._fields)))


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
    terms: Floats  # [B, T + C] sum of each reward term over the episode, then the counts
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


OF_ENEMIES = ("enemies", "enemy_hits_left", "enemy_is_target")  # fields [B, E, ...]


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
    target_columns: int  # of an observation, one for each of TARGET_CODES; 0: it has none
    enemy_columns: int  # of an observation, before its rays; 0: enemies are no units of it
    recalls: bool  # whether any row may have an episode with recall_seconds
    perception: bool  # whether rays are laid out as in ML-Agents
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
    terms: Floats  # [B, T + C]


class RayWorkspace(NamedTuple):
    """What one thread works with."""

    thread_id: int  # 0 is the caller's, k + 1 that of worker k
    spin_limit: int  # how often the thread checks the others before it gives up
    scratch: Floats32  # [4, R padded] of its own

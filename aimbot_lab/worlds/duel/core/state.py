"""What the duel's kernels read and write.

A match has two seats, home (agent 0) and away (agent 1). With B matches the seat of agent a in
match m is a * B + m. Each lives in a frame of its own: a place (x, z) is for the other
(S - x, S - z), S the floor's side, and a direction changes its sign.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.worlds.arena.core.state import PARAMETERS as OF_ARENA
from aimbot_lab.worlds.arena.core.state import ArenaState, ArenaTables

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

AGENTS = 2
LEVELS = 5  # difficulties
TARGET = "duel"
"""Both seats are played from outside."""
SCRIPTS = ("still", "random", "greedy", "aimbot")
SELF, REFERENCE = LEARNED = ("self", "reference")
"""A past self of the learner: any that is drawn, or the one that its lesson began with."""
KINDS = (TARGET, *SCRIPTS, *LEARNED)
"""Kinds of matches, by who sits in the away seat, in the order of their numbers."""
MAX_BOXES = 24  # of a layout, twins among them
MIDDLE_X, MIDDLE_Z, HALF_X, HALF_Z = range(4)  # rows of an extent
EXTENT = 4  # rows
SLACK = np.float32(2e-3)  # m, far more than single precision errs by in a hall
BRANCHES = (3, 3, 2)  # of an action: vertical, horizontal, attack
VERTICAL, HORIZONTAL, SHOOT, MOUSE = range(4)  # columns of an action
ACTION_COLUMNS = 4
OPPONENT_FEATURES = 5  # ahead, right, hits left, looks ahead, looks right
OPPONENT_COLUMNS = OPPONENT_FEATURES + 1  # and whether it is seen
TRIES = 1000  # draws of the starts before the layout's own
MIN_APART = 8.0  # m between two starts
START_LOW, START_GAP = 0.5, 4.0  # m: z of a mirrored start lies from here to S / 2 - START_GAP
RUNNING = 2  # outcome of a match that goes on
LOSS, DRAW, WIN = -1, 0, 1  # as in foundation.episodes
NO_SHOT, MISSED, HIT = range(3)

REWARD_TERMS = ("win", "hit", "facing", "spin_penalty", "move_penalty")
(WIN_TERM, HIT_TERM, FACING_TERM, SPIN_TERM, MOVE_TERM) = range(len(REWARD_TERMS))

SHARED = (
    *(f"rewards.{term}" for term in REWARD_TERMS),
    "decision_period",
    "fixed_timestep",
    "time_limit",
)
"""Parameters of a match."""
OF_SEATS = (
    "agent_radius",
    "decision_every",
    "move_speed",
    "gun_cooldown",
    "gun_range",
    "health",
    "damage",
    "mouse_limit",
    "mouse_factor",
    "spin_threshold",
    "spin_rate",
    "facing_distance",
    "rays.range",
    "rays.view_angle",
    "rays.middle_share",
)
"""Parameters of both agents, and by the name away.NAME of the away agent alone."""
AWAY = "away."
PARAMETERS = (*SHARED, *OF_SEATS, *(AWAY + name for name in OF_SEATS))
SHARED_COUNT, SEAT_COUNT = len(SHARED), len(OF_SEATS)
PERIOD, TIMESTEP, TIME_LIMIT = range(len(REWARD_TERMS), SHARED_COUNT)
RADIUS, EVERY, HEALTH, DAMAGE = (
    OF_SEATS.index(name) for name in ("agent_radius", "decision_every", "health", "damage")
)
IN_ARENA = np.array([OF_ARENA.index(name) if name in OF_ARENA else -1 for name in OF_SEATS])
"""[SEAT_COUNT] Which of the arena's parameters each one is; -1: none."""


class DuelState(NamedTuple):
    """Everything that changes. B matches, N = 2 B seats."""

    seats: ArenaState  # [N, ...] each agent in its own frame; its only enemy is the other
    health: Ints  # [N] hits left; 0: down
    held: Floats32  # [N, 4] the action that an agent makes, which it repeats until its next
    hit_from: Floats  # [N, 2] unit vector (ahead, right) to where it was shot from, or 0, 0
    mouse: Floats  # [N] of the last decision, clipped
    moved: Bools  # [N] whether the last decision displaced it
    shot: Ints  # [N] NO_SHOT, MISSED or HIT in the last decision
    traits: Floats  # [N, SEAT_COUNT] the parameters of seats that are in force
    loadout: Ints  # [N] index of the loadout, -1: none
    earned: Floats  # [N, T] own terms of the last decision
    terms: Floats  # [N, T] sum of each reward term over the match
    layout: Ints  # [B] index into the layouts
    kind: Ints  # [B] index into KINDS
    difficulty: Ints  # [B] 1 to 5
    parameters: Floats  # [B, P] as drawn for this match
    streams: Words  # [B] random stream of the match; seats have their own
    sampler_key: Words  # [1] seed of the samplers that have none of their own
    episode: Ints  # [B] matches begun in the row since the reset
    clock: Ints  # [1] steps of the whole batch since the reset


IN_SEATS = "seats."  # how a snapshot's names of the arrays of seats begin


class LayoutTables(NamedTuple):
    """All layouts, sorted by difficulty."""

    level_first: Ints  # [LEVELS + 1] first layout of each difficulty
    level_count: Ints  # [LEVELS + 1]
    boxes: Floats  # [L, K, 4] m, min x, min z, max x, max z
    box_count: Ints  # [L]
    extents: Floats32  # [4 L, K rounded up to lanes] m: middles' x, their z, half sides by x, by z
    start: Floats  # [L, 3] m, m and rad: x, z and yaw where no drawn start fits


class DuelScenarioTables(NamedTuple):
    """What the next matches are drawn from."""

    number: Ints  # [1] of the scenario, counted from 1
    kind_weights: Floats  # [KINDS]
    difficulty_weights: Floats  # [KINDS, LEVELS]
    sampler: Ints  # [P] as in foundation.kernels.draw_parameters, like the following
    sampler_values: Floats  # [P, 2]
    sampler_ranges: Floats  # [P, I, 2]
    sampler_range_count: Ints  # [P]
    sampler_seed: Words  # [P]
    sampler_seeded: Bools  # [P]
    bounds: Floats  # [P, 2] lowest and highest value that a parameter takes
    whole: Bools  # [P] whether it takes whole numbers alone
    handicap: Bools  # [SEAT_COUNT] whether away.NAME is given


class DuelTables(NamedTuple):
    """What all matches share and no kernel writes."""

    arena: ArenaTables  # of the rays
    layouts: LayoutTables
    scenario: DuelScenarioTables
    loadout_weights: Floats  # [W]
    loadouts: Floats  # [W, SEAT_COUNT] NaN where a loadout leaves a trait alone
    observed: Ints  # [O] which traits of both agents are observed
    usual: Floats  # [SEAT_COUNT] as the settings give them
    mirrored_start: bool
    mirrored_loadouts: bool
    health_decides: bool  # who wins at the time limit
    shows_opponent: bool  # whether the opponent is a unit of the observation
    rows: RowNumbers


class MatchLog(NamedTuple):
    """How the last match of each row ended, kept from before its reset."""

    outcome: Int8s  # [N]
    kind: Ints  # [B]
    difficulty: Ints  # [B]
    length: Ints  # [B] decisions
    seconds: Floats  # [B]
    order: Ints  # [N]
    scenario: Ints  # [N]
    terms: Floats  # [N, T]

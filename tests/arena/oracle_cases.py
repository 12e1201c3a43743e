"""Set-ups of the arena that meet every rule between them."""

from dataclasses import dataclass, field

from arena_stage import gaussian, ranges, uniform

from aimbot_lab.foundation.world import Scenario
from aimbot_lab.worlds.arena.presets import Preset
from aimbot_lab.worlds.arena.settings import ObservationSettings, RaySettings, RewardWeights


@dataclass(frozen=True)
class Case:
    """One set-up, and what must have happened in it at least once."""

    name: str
    scenario: Scenario
    met: tuple[str, ...]
    settings: dict = field(default_factory=dict)
    later: Scenario | None = None  # in force from half way
    strangers: int = 0  # enemies that a person puts on the floor, in no block
    presets: tuple[Preset, ...] = ()  # in place of those shipped


ODD_REWARDS = RewardWeights(
    **{"non_target_hit": -2.5, "target_hit": 7.0, "move_penalty": 0.25, "spin_penalty": 0.3},
    **{"win": 50.0, "lose": -10.0, "facing": -1.5, "distance": 3.0, "in_area": 1.25},
    **{"suppressive": 0.75, "facing_area": -0.125},
)
WIDE = RaySettings(middle_count=9, side_count=3, middle_share=0.3, view_angle=170.0, range=9.0)
LONE = RaySettings(middle_count=1, side_count=4, view_angle=60.0, range=15.0, tags="one_hot")
ONE_HOT = RaySettings(tags="one_hot", range=20.0)
UNITS = ObservationSettings(units=True)
ALL = {"free": 1.0, "goto": 1.0, "attack": 1.0}
WITH_STAY = {**ALL, "stay": 0.2}
UNEVEN = {"goto": (2.0, 0.0, 0.0, 0.0, 1.0), "attack": (0.0, 0.0, 1.0, 0.0, 1.0)}
TOUGH = {"enemy_hits_to_kill": 2.0, "gun_cooldown": 0.5, "decision_period": 3.0, "move_speed": 8.0}
SPINNY = {"spin_threshold": 3.0, "spin_rate": 0.5, "line_stopped_by_obstacles": 1.0}
SLOW = {"decision_period": 7.0}  # which does not divide the time limit
SMALL = {"rays.range": 6.0, "gun_range": 5.0, "mouse_limit": 2.0, "move_speed": 12.0}
BIG = {"agent_radius": 0.3, "enemy_radius": 0.9, "free_enemies": 3.0, "mouse_factor": 0.3}
MOVED = {
    "goto_win_radius": 0.4,
    "block_gap_to_agent": 3.0,
    "block_gap_to_walls": 4.0,
    "move_speed": 9.0,
}


VARIED = {
    "move_speed": gaussian(8.0, 3.0),
    "rays.range": ranges((3.0, 9.0), (30.0, 60.0)),
    "rays.view_angle": uniform(40.0, 180.0),
    "rays.middle_share": uniform(0.1, 0.6),
    "floor_size": uniform(30.0, 47.0),
    "agent_radius": uniform(0.2, 0.5),
    "enemy_radius": uniform(0.3, 1.0),
    "enemy_hits_to_kill": uniform(1.0, 3.0),
    "free_enemies": uniform(1.0, 6.0),
    "decision_period": uniform(2.0, 9.0),
    "gun_cooldown": uniform(0.0, 0.8),
    "time_limit": uniform(2.0, 12.0),
    "facing_distance": uniform(0.1, 1.5),
    "rewards.target_hit": uniform(-5.0, 5.0),
    "recall_seconds": gaussian(0.0, 1.0),
}


def block(name: str, fire_base, enemies=(), *, obstacles=()) -> Preset:
    target = "attack" if enemies else "goto"
    return Preset(name, target, 1, fire_base, tuple(obstacles), tuple(enemies))


# Enemies exactly on the rim by their decimals, whatever binary fractions say.
RIMS = (
    block("east", (5.1, 5.0, 4.2), [(7.2, 5.0), (3.0, 5.0)]),
    block("north", (4.9, 5.3, 4.6), [(4.9, 7.6), (4.9, 3.0)]),
    block("slant", (5.1, 5.1, 5.0), [(6.6, 7.1), (3.6, 3.1), (7.1, 3.6)]),
    block("slanter", (5.2, 4.7, 2.6), [(5.7, 5.9), (4.7, 3.5), (6.4, 4.2)]),
)
# Walls that are cut into flush boxes, an angle, and doors that are a little too narrow.
SEAMS = (
    block("wall", (5.0, 8.0, 3.0), obstacles=[(5, 4, 9, 5), (1, 4, 5, 5), (3.3, 6, 4, 6.4)]),
    block(
        "angle", (6.0, 6.0, 2.0), obstacles=[(2, 2, 3, 5), (2, 5, 3, 8), (3, 2, 5, 3), (5, 2, 8, 3)]
    ),
    block(
        "doors",
        (5.0, 8.0, 3.0),
        obstacles=[(0, 5, 2.1, 6), (3, 5, 5, 6), (5.0, 5, 6, 6), (6.7, 5, 9, 6)],
    ),
)
CASES = (
    Case(
        "enemies on the rim",
        Scenario({"attack": 1}),
        ("won", "lost", "target_hit"),
        {"time_limit": 12.0, "gun_range": 30.0},
        presets=RIMS,
    ),
    Case(
        "bystanders",
        Scenario({"goto": 1, "attack": 1}, parameters={"bystanders": uniform(0.0, 40.0)}),
        ("won", "lost", "non_target_hit", "target_hit", "tag 1"),
        {"time_limit": 10.0},
        later=Scenario({"goto": 1, "attack": 1, "free": 1}, parameters={"bystanders": 3.0}),
    ),
    Case(
        "a crowd",
        Scenario({"free": 1}, parameters={"free_enemies": uniform(30.0, 90.0)}),
        ("target_hit", "facing", "blocked moves"),
        {"observation": UNITS, "time_limit": 10.0},
    ),
    Case(
        "walls cut into boxes",
        Scenario({"goto": 1}),
        ("won", "lost", "blocked moves"),
        {"time_limit": 12.0},
        presets=SEAMS,
    ),
    Case("goto", Scenario({"goto": 1}), ("won", "lost", "distance", "in_area", "spun")),
    Case("attack", Scenario({"attack": 1}), ("won", "lost", "suppressive", "facing_area")),
    Case("free", Scenario({"free": 1}), ("lost", "facing", "target_hit", "tag 1")),
    Case("stay", Scenario({"stay": 1}), ("stayed", "spun", "blocked moves")),
    Case(
        "short one-hot rays, all targets",
        Scenario(WITH_STAY),
        ("won", "lost", "tag -1", "tag 0", "tag 1"),
        {"rays": ONE_HOT, "observation": UNITS, "time_limit": 8.0, "move_speed": 8.0},
    ),
    Case(
        "wide rays, tough enemies",
        Scenario({"attack": 1, "free": 1}, parameters=TOUGH),
        ("target_hit", "won", "tag -1", "tag 1"),
        {"rays": WIDE, "time_limit": 9.0},
    ),
    Case(
        "other rewards, other places",
        Scenario(WITH_STAY, UNEVEN, MOVED),
        ("won", "lost", "facing", "distance"),
        {"rewards": ODD_REWARDS, "time_limit": 10.0},
    ),
    Case(
        "reckless speed",
        Scenario(ALL, parameters={"move_speed": 60.0, "decision_period": 10.0}),
        ("won", "lost", "walked into something"),
        {"floor_size": 31.0, "rays": LONE, "time_limit": 12.0},
    ),
    Case(
        "view stopped by obstacles, short spin window",
        Scenario({"attack": 1}, parameters=SPINNY | SLOW),
        ("facing_area", "suppressive", "spun"),
        {"spin_window": 7, "time_limit": 10.0},
    ),
    Case(
        "a new scenario in the middle of play",
        Scenario(ALL, parameters=SMALL),
        ("won", "lost", "tag -1", "target_hit"),
        {"time_limit": 7.0},
        Scenario({"free": 1, "goto": 1}, parameters=BIG),
    ),
    Case(
        "strangers on the floor",
        Scenario({"goto": 1, "stay": 0.2}, parameters={"enemy_hits_to_kill": 3.0}),
        ("non_target_hit", "tag 1", "in_area"),
        {"observation": UNITS, "time_limit": 9.0, "move_speed": 8.0},
        strangers=5,
    ),
    Case(
        "every episode other numbers",
        Scenario(ALL, parameters=VARIED),
        ("won", "lost", "target_hit", "tag -1", "tag 1", "facing", "held", "recalled"),
        {
            "observation": UNITS,
            "time_limit": 12.0,
            "start_position": (5.0, 40.0),
            "start_yaw": 100.0,
        },
    ),
)
EDITS = ("edited", "refused", "carried on")
EDITED = (
    Case(
        "test mode",
        Scenario({"stay": 1}),
        (*EDITS, "won", "target_hit", "distance", "stayed"),
        {"time_limit": 8.0, "move_speed": 8.0},
    ),
    Case(
        "every target and other numbers",
        Scenario(ALL, parameters=VARIED),
        (*EDITS, "won", "lost", "tag 1", "held"),
        {"time_limit": 12.0, "rays": RaySettings(tags="one_hot")},
    ),
)

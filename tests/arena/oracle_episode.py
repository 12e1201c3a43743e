"""What the oracle knows of an episode, and the numbers in force in it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from oracle_view import Box, Fan, Point, Wall, fan_of, walls_of

from aimbot_lab.worlds.arena.core.state import COUNT, REWARD_TERMS

FREE, GOTO, ATTACK, STAY = 0, 1, 2, 4
TERMS = REWARD_TERMS
COUNTS = COUNT._fields


@dataclass(frozen=True)
class Rules:
    """The numbers in force, by the name of their setting."""

    spin_window: int  # actions
    fan: Fan
    numbers: Mapping[str, float]
    units: bool = False  # whether enemies have columns of their own

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]

    @property
    def period(self) -> int:
        return round(self["decision_period"])

    @property
    def decision_seconds(self) -> float:
        return self.period * self["fixed_timestep"]

    @property
    def decision_limit(self) -> int:
        return math.floor(self["time_limit"] / self.decision_seconds + 1e-6)


def rules_of(settings, names, parameters: Mapping[str, float]) -> Rules:
    """The settings with a lesson's parameters in their place; `names` are those one can set."""
    numbers = {}
    for name in names:
        number = settings
        for part in name.split("."):
            number = getattr(number, part)
        numbers[name] = float(parameters.get(name, number))
    fan = fan_of(settings.rays, numbers["rays.view_angle"], numbers["rays.middle_share"])
    return Rules(settings.spin_window, fan, numbers, settings.observation.units)


@dataclass(frozen=True)
class Episode:
    """Everything about one running episode."""

    target: int
    difficulty: int
    x: float  # m
    z: float  # m
    yaw: float  # rad in (-pi, pi]
    fire_base: tuple[float, float, float] | None  # m, centre x, centre z, diameter
    boxes: tuple[Box, ...]
    walls: tuple[Wall, ...] = field(repr=False)
    enemies: tuple[Point, ...]
    hits_left: tuple[int, ...]
    targets: tuple[bool, ...] = ()  # in Attack, whether each enemy counts
    decisions: int = 0
    gun_ticks: int = 0
    mouse: tuple[float, ...] = ()  # clipped, oldest first, at most a spin window
    terms: tuple[float, ...] = (0.0,) * len(TERMS)  # summed over the episode
    counts: tuple[int, ...] = (0,) * len(COUNTS)  # the same


class Outcome(NamedTuple):
    """What one decision led to."""

    episode: Episode
    terms: dict[str, float]
    won: bool
    finished: bool


class Shot(NamedTuple):
    """What attacking led to."""

    fired: bool
    enemy: int  # index of the enemy that was hit, -1 for none


def new_episode(rules: Rules, *, target: int, pose: tuple[float, float, float], **rest) -> Episode:
    """An episode at its start, with the walls that its boxes and the floor make."""
    x, z, yaw = pose
    walls = walls_of(rules["floor_size"], rest["boxes"])
    return Episode(target=target, x=x, z=z, yaw=yaw, walls=walls, **rest)


def gun_ready(episode: Episode) -> bool:
    """Whether attacking at the next decision fires a shot."""
    return episode.gun_ticks <= 0


def held(rules: Rules, episode: Episode) -> bool:
    """Whether the agent is still shown what it has to recall: it stands still until then."""
    return episode.decisions < math.ceil(rules["recall_seconds"] / rules.decision_seconds - 1e-6)


def distance_to_fire_base(episode: Episode) -> float:
    """Metres from the agent's centre to that of the FireBase."""
    return math.dist((episode.x, episode.z), episode.fire_base[:2])


def inside(episode: Episode, place: Point) -> bool:
    """Whether a place is in the closed FireBase circle; never where there is none."""
    if episode.fire_base is None:
        return False
    return math.dist(place, episode.fire_base[:2]) <= episode.fire_base[2] / 2

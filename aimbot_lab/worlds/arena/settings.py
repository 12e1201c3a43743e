"""Every number and choice of the arena, with its unit; the source is Aimbot-ParallelEnv."""

from collections.abc import Mapping
from math import pi, radians
from os import PathLike, fspath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, MAX_PLACED

Reward = Annotated[Float, Ge(-1e9), Le(1e9)]
Radius = Annotated[Float, Ge(0.05), Le(1)]
Reach = Annotated[Float, Gt(0), Le(10_000)]
Gap = Annotated[Float, Ge(0), Le(100)]
Coordinate = Annotated[Float, Ge(0), Le(1000)]


def _listed(paths: Any) -> Any:
    """`paths` as texts; a single one is not taken for a list of letters."""
    if isinstance(paths, str | PathLike):
        raise ValueError(f"must be a list of files and folders, such as [{fspath(paths)!r}]")
    if isinstance(paths, list | tuple):
        return tuple(fspath(path) if isinstance(path, PathLike) else path for path in paths)
    return paths


Paths = Annotated[tuple[str, ...], BeforeValidator(_listed)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RewardWeights:
    """What each event or state earns per decision; a weight carries its sign."""

    non_target_hit: Reward = 3.0
    """A shot that hits an enemy other than a target."""
    target_hit: Reward = 25.0
    """A shot that hits or kills a target."""
    move_penalty: Reward = -0.5
    """A decision in which the agent was displaced."""
    spin_penalty: Reward = 1.0
    """Factor on the penalty for turning: -0.06 |mouse| while the net turn of the last 40 actions is
    below 10 rad, minus that net turn otherwise."""
    win: Reward = 999.0
    """The episode was won."""
    lose: Reward = -999.0
    """The episode was lost."""
    facing: Reward = 1.0
    """Free: factor on the reward for looking at the nearest detected enemy."""
    distance: Reward = 20.0
    """Goto: reward per metre that the agent comes closer to the FireBase's centre, while outside
    it."""
    in_area: Reward = 5.0
    """Goto: a decision spent inside the FireBase circle."""
    suppressive: Reward = 5.0
    """Attack: a shot while the centre line of the view crosses the FireBase circle."""
    facing_area: Reward = 2.0
    """Attack: a decision in which that line crosses the circle and no shot is fired."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RaySettings:
    """The fan of rays that the agent sees with, left to right."""

    middle_count: Annotated[Int, Ge(1), Le(63)] = 5
    """Rays in the middle of the view; odd, so that one lies on the gun's line."""
    side_count: Annotated[Int, Ge(0), Le(63)] = 7
    """Rays on each side of the middle."""
    middle_share: Annotated[Float, Gt(0), Le(1)] = 0.15
    """Share of the view angle that the middle rays span from edge to edge."""
    view_angle: Annotated[Float, Gt(0), Le(180)] = 90.0
    """Whole view angle in degrees."""
    range: Reach = 100.0
    """Length of a ray in metres; a hit at exactly this distance still counts."""
    tags: Literal["label", "one_hot"] = "label"
    """Coding of what a ray hit: one number a ray, or three."""

    def __post_init__(self) -> None:
        if self.middle_count % 2 == 0:
            raise ValueError(
                "middle_count must be odd, so that the gun's line is seen "
                f"(got {self.middle_count})"
            )

    @property
    def count(self) -> int:
        """Rays in the whole fan."""
        return self.middle_count + 2 * self.side_count

    @property
    def angles(self) -> tuple[float, ...]:
        """Angle of each ray to the gun's line in rad, left to right, as an episode casts them."""
        half_view = radians(self.view_angle) / 2
        half_middle = half_view * self.middle_share
        arm = self.middle_count // 2
        side = half_view - half_middle
        right = [half_middle * rank / arm for rank in range(1, arm + 1)]
        right += [half_middle + side * r / self.side_count for r in range(1, self.side_count + 1)]
        return (*(-angle for angle in reversed(right)), 0.0, *right)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CameraSettings:
    """The picture that the agent sees ahead of it, of square pixels."""

    width: Annotated[Int, Ge(4), Le(128)] = 32
    """Pixels of a row."""
    height: Annotated[Int, Ge(4), Le(128)] = 16
    """Rows, of which three tenths are above the horizon."""
    grey: Bool = True
    """Whether a pixel is one shade of grey, or red, green and blue."""
    view_angle: Annotated[Float, Ge(10), Le(150)] = 90.0
    """Whole angle in degrees from its left edge to its right."""

    @property
    def channels(self) -> int:
        """Numbers of a pixel."""
        return 1 if self.grey else 3


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ObservationSettings:
    """What an observation has besides the agent's own numbers, and the layout of the rays."""

    units: Bool = False
    """Whether it has columns for the six nearest enemies that a ray within range hits."""
    target: Literal["number", "one_hot"] = "number"
    """The target's type: one number, or beside it a column for each type, 0 or 1."""
    rays: Literal["plain", "ml-agents"] = "plain"
    """`plain`: tags and distances in metres, left to right; `ml-agents`: the layout of ML-Agents'
    RayPerceptionSensor, which ignores rays.tags."""
    camera: CameraSettings | None = None
    """The picture that the agent sees; left out, none."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ArenaSettings:
    """The arena: floor, motion, gun, targets, rays and rewards."""

    world: Literal["arena"] = "arena"
    """The world."""
    num_envs: Annotated[Int, Ge(1), Le(65536)] = 512
    """Environments stepped together, one row each."""
    threads: Annotated[Int, Ge(1), Le(64)] = 1
    """Threads that step them."""
    floor_size: Annotated[Float, Ge(20), Le(1000)] = 47.0
    """Side of the square floor in metres."""
    agent_radius: Radius = 0.5
    """Radius of the agent's disc in metres."""
    enemy_radius: Radius = 0.5
    """Radius of an enemy's disc in metres."""
    decision_period: Annotated[Int, Ge(1), Le(20)] = 5
    """Physics ticks per decision."""
    fixed_timestep: Annotated[Float, Ge(0.0001), Le(0.1)] = 0.02
    """Seconds per physics tick."""
    time_limit: Annotated[Float, Ge(0.0001), Le(3600)] = 30.0
    """Seconds after which an episode is lost."""
    recall_seconds: Annotated[Float, Ge(0), Le(3600)] = 0.0
    """Seconds at the start of an episode for which the agent stands still and sees the FireBase,
    which is hidden afterwards; 0: always visible."""
    move_speed: Annotated[Float, Ge(0), Le(1000)] = 5.0
    """Metres per second."""
    gun_cooldown: Annotated[Float, Ge(0), Le(3600)] = 0.3
    """Seconds between two shots, counted in ticks."""
    gun_range: Reach = 100.0
    """Range of a shot in metres."""
    enemy_hits_to_kill: Annotated[Int, Ge(1), Le(100)] = 1
    """Hits that it takes to kill an enemy."""
    free_enemies: Annotated[Int, Ge(1), Le(MAX_PLACED)] = 6
    """Enemies in a Free episode."""
    bystanders: Annotated[Int, Ge(0), Le(MAX_PLACED)] = 0
    """Goto and Attack: enemies outside the target block; they are not targets."""
    mouse_limit: Annotated[Float, Gt(0), Le(1000)] = 5.0
    """The mouse action is clipped to plus or minus this."""
    mouse_factor: Annotated[Float, Gt(0), Le(10)] = 0.08
    """Radians turned per unit of the mouse action."""
    goto_win_radius: Annotated[Float, Gt(0), Le(1000)] = 1.0
    """Goto is won within this distance of the FireBase centre, in metres."""
    block_gap_to_agent: Gap = 1.0
    """Free floor between a new target block and the agent's disc, in metres."""
    block_gap_to_walls: Annotated[Float, Ge(0), Le(5)] = 1.5
    """Free floor between a target block and the outer walls, in metres."""
    spin_window: Annotated[Int, Ge(1), Le(1000)] = 40
    """Actions over which the net turn is summed."""
    spin_threshold: Annotated[Float, Gt(0), Le(1e6)] = 10.0
    """Net turn in radians from which the penalty for spinning is the turn itself."""
    spin_rate: Annotated[Float, Ge(0), Le(1e6)] = 0.06
    """Penalty per unit of the mouse action below that threshold."""
    facing_distance: Annotated[Float, Ge(0), Le(1e6)] = 0.5
    """Free: an enemy within this distance of the view's centre line earns the full reward, m."""
    line_stopped_by_obstacles: Bool = False
    """Whether obstacles stop the view line of `suppressive` and `facing_area`."""
    start_position: tuple[Coordinate, Coordinate] = (2.0, 2.0)
    """Where an agent's first episode begins: x and z in metres."""
    start_yaw: Annotated[Float, Ge(-180), Le(180)] = 0.0
    """Where it then looks, in degrees to the right of +z."""
    stacked_vectors: Annotated[Int, Ge(1), Le(50)] = 1
    """How many observations are stacked, oldest first; zeros before an episode's first."""
    shipped_presets: Bool = True
    """Whether the shipped target blocks are drawn, beside those of `presets`."""
    presets: Paths = ()
    """Files and folders of target blocks of your own."""
    rays: RaySettings = RaySettings()
    """What the agent sees with."""
    observation: ObservationSettings = ObservationSettings()
    """What else it observes."""
    rewards: RewardWeights = RewardWeights()
    """What the agent earns."""

    def __post_init__(self) -> None:
        low, high = self.agent_radius, self.floor_size - self.agent_radius
        if not all(low <= place <= high for place in self.start_position):
            raise ValueError(
                f"start_position must lie between {low:g} and {high:g}, with the whole disc on "
                f"the floor (got {self.start_position})"
            )
        needed = 2 * (10 + self.block_gap_to_walls + self.block_gap_to_agent + self.agent_radius)
        if self.floor_size < needed:
            raise ValueError(
                f"floor_size must be at least {needed:g}, so that a block fits beside the agent "
                f"wherever it stands (got {self.floor_size:g})"
            )
        fault = crowd_fault({name: getattr(self, name) for name in CROWD}, self.floor_size)
        if fault is not None:
            raise ValueError(fault)

    @property
    def decision_seconds(self) -> float:
        """Seconds between two decisions."""
        return self.decision_period * self.fixed_timestep


TAKEN_SHARE = 0.9
"""Of the places, that may be taken: then a thousand draws find a free one but once in 10^45."""
CROWD = ("enemy_radius", "agent_radius", "free_enemies", "bystanders")


def crowd_fault(numbers: Mapping[str, float], floor_size: float) -> str | None:
    """Why enemies might not find a free place with these numbers of `CROWD`; None: they do."""
    lengths = floor_size, numbers["enemy_radius"], numbers["agent_radius"]
    for name, most in (
        ("free_enemies", most_free_enemies(*lengths)),
        ("bystanders", most_bystanders(*lengths)),
    ):
        if numbers[name] > most:
            return (
                f"{name} must be at most {most} with this floor and these radii, so that "
                f"each finds a free place (got {numbers[name]:g})"
            )
    return None


def most_free_enemies(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place in an empty hall."""
    return _most(floor_size, enemy_radius, agent_radius, taken=0.0)


def most_bystanders(floor_size: float, enemy_radius: float, agent_radius: float) -> int:
    """Enemies that surely find a place beside a target block."""
    side = BLOCK_SIZE + 2.0 * (enemy_radius + 2.0 * agent_radius)
    return _most(floor_size, enemy_radius, agent_radius, taken=side * side)


def _most(floor_size: float, enemy_radius: float, agent_radius: float, *, taken: float) -> int:
    span = floor_size - 2.0 * enemy_radius
    taken += pi * (enemy_radius + agent_radius) ** 2
    left = TAKEN_SHARE * span * span - taken
    return max(0, 1 + int(left / (pi * (2.0 * enemy_radius) ** 2))) if left > 0 else 0

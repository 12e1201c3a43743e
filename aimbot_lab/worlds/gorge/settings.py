"""Every number and choice of Gorge Walk; the source is Tencent Kaiwu's Gorge Walk v1."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Annotated, Any, Literal

from annotated_types import MinLen
from pydantic import Discriminator, Tag

from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.worlds.gorge.core.state import DOWN, LEFT, MAX_VIEW, RIGHT, SITES, UP

MAX_LIMIT = 65_535  # steps of an episode
MAX_POINTS = 1e6
MAX_REWARD = 1e9
DEFAULT_TREASURES = 5
DEFAULT_FEATURES = (
    "pos_row",
    "pos_col",
    "obstacle_map",
    "treasure_map",
    "walked_map",
    "list_treasure",
)
"""The processed observation of Kaiwu's Gorge Walk: 213 columns with a view of 2."""


class Move(IntEnum):
    """What a step does; its name is the word for it."""

    up = UP
    down = DOWN
    left = LEFT
    right = RIGHT


Reward = Annotated[Float, Ge(-MAX_REWARD), Le(MAX_REWARD)]
Points = Annotated[Float, Ge(0), Le(MAX_POINTS)]
Site = Annotated[Int, Ge(0)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GorgeRewardWeights:
    """What each event or state earns per step; a weight carries its sign."""

    treasure: Reward = 1.0
    """Factor on the points of the treasure that was taken."""
    finish: Reward = 1.0
    """Factor on the points for arriving at the end."""
    step_score: Reward = 1.0
    """Factor on the points for steps left on arrival."""
    step_penalty: Reward = 0.0
    """Every step."""
    bump: Reward = 0.0
    """A move that a wall stopped."""
    revisit: Reward = 0.0
    """Factor on how often the entered cell was visited before, 0 to 1."""
    distance: Reward = 0.0
    """Factor on how much shorter the way to the end becomes."""
    treasure_distance: Reward = 0.0
    """Factor on how much shorter the way to the nearest treasure becomes."""
    win: Reward = 0.0
    """The episode was won."""
    lose: Reward = 0.0
    """The episode was lost."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ScoreSettings:
    """The game's own score, beside the treasures' points."""

    end: Points = 150.0
    """Points for arriving at the end."""
    step: Points = 0.2
    """Points for each step that is left on arrival."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GenerateSettings:
    """Maps of the generator; the same numbers give the same maps everywhere."""

    count: Annotated[Int, Ge(1), Le(1024)] = 64
    """How many maps; each episode draws one."""
    seed: Annotated[Int, Ge(0), Le(2**63 - 1)] = 1
    """Seed of the generator."""
    obstacle_share: Annotated[Float, Ge(0), Le(1)] = 0.4
    """Share of the cells that are obstacles."""
    sites: Annotated[Int, Ge(1), Le(SITES)] = SITES
    """Treasure sites of each map."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GeneratedMaps:
    """Generated maps instead of one from a file."""

    generate: GenerateSettings = GenerateSettings()
    """Which maps."""


def _kind_of_map(value: Any) -> str:
    return "generated" if isinstance(value, Mapping | GeneratedMaps) else "file"


MapChoice = Annotated[
    Annotated[str, MinLen(1), Tag("file")] | Annotated[GeneratedMaps, Tag("generated")],
    Discriminator(_kind_of_map),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GorgeSettings:
    """Gorge Walk: map, limit, treasures, what the hero sees, score and rewards."""

    world: Literal["gorge"] = "gorge"
    """The world."""
    num_envs: Annotated[Int, Ge(1), Le(65536)] = 512
    """Environments stepped together, one row each."""
    threads: Annotated[Int, Ge(1), Le(64)] = 1
    """Threads that step them."""
    map: MapChoice = "gorge"
    """A shipped map, the path of a file, or `{generate: {...}}`."""
    max_steps: Annotated[Int, Ge(1), Le(MAX_LIMIT)] = 2000
    """Steps after which an episode that has not arrived at the end is lost."""
    treasure_pool: Annotated[tuple[Site, ...], MinLen(1)] | None = None
    """Sites at which treasures may be; left out, every site of the map."""
    treasure_num: Annotated[Int, Ge(0)] | None = None
    """Treasures of an episode of `score`; left out, 5 or the whole pool where that is smaller."""
    view: Annotated[Int, Ge(1), Le(MAX_VIEW)] = 2
    """Cells that the hero sees to each side."""
    features: Annotated[tuple[str, ...], MinLen(1)] = DEFAULT_FEATURES
    """Blocks of the observation, in their order."""
    windows: Literal["columns", "pictures"] = "columns"
    """Whether the maps around the hero (obstacle_map, treasure_map, end_map, walked_map) are plain
    numbers or pictures, which convolutions encode."""
    score: ScoreSettings = ScoreSettings()
    """The game's own score."""
    score_decay: Bool = False
    """Whether a treasure taken in step n earns 1 - n / max_steps of its points."""
    random_start: Bool = False
    """Whether `collect` and `score` begin at any cell that can be reached."""
    win_share: Annotated[Float, Gt(0), Le(1)] = 0.9
    """Share of the best possible score from which `score` is won."""
    rewards: GorgeRewardWeights = GorgeRewardWeights()
    """What the agent earns."""

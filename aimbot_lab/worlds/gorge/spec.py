"""Gorge Walk's shape as every adapter and policy sees it."""

import numpy as np

from aimbot_lab.foundation.statistics.measures import Measure
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.worlds.gorge.core import state as core
from aimbot_lab.worlds.gorge.features import columns, observation_blocks
from aimbot_lab.worlds.gorge.settings import GorgeSettings

TARGETS = {"walk": core.WALK, "collect": core.COLLECT, "score": core.SCORE}
DIFFICULTIES = {"walk": core.DIFFICULTY_COUNT, "collect": core.DIFFICULTY_COUNT, "score": 0}
ABILITIES = frozenset({"snapshot", "masks", "draw", "replay", "paired"})
RESULT_COLUMNS = ("steps", "bumps", "treasures", "placed", "score", "optimum")
EPISODE_COLUMNS = (*RESULT_COLUMNS, "arrived", "treasure_score")
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
    )

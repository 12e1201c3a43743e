"""Evaluation while an agent trains, as a curriculum writes it."""

from typing import Annotated

from aimbot_lab.foundation.settings import STRICT, Ge, Int, Le, dataclass
from aimbot_lab.foundation.statistics.intervals import MIN_EPISODES


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EvaluationSettings:
    """How often the agent plays the last lesson's cells while it trains, in episodes of their own.

    These are the same in every run and change nothing in the training.
    """

    every: Annotated[Int, Ge(1)]
    """Environment steps between two evaluations; each waits for the next rollout."""
    episodes: Annotated[Int, Ge(MIN_EPISODES), Le(10_000)] = 50
    """Episodes of each target at each difficulty."""
    max_steps: Annotated[Int, Ge(1)] | None = None
    """Steps of an episode after which it counts as endless, which is an error here and where the
    run is evaluated; by default twice the world's longest episode, or 30,000 where that is not
    known."""

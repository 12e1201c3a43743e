"""Which snapshots are met next.

By the newest share: Bansal et al. 2018, "Emergent complexity via multi-agent competition",
arXiv:1710.03748. Prioritised fictitious self-play: Vinyals et al. 2019, "Grandmaster level in
StarCraft II using multi-agent reinforcement learning", doi:10.1038/s41586-019-1724-z.
"""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.training.self_play.settings import (
    SamplingByNewest,
    SamplingByRating,
    SamplingByScore,
    SelfPlaySettings,
)

Floats = npt.NDArray[np.float64]
MIN_SHARE = 0.02  # that each candidate keeps, or an even share where there are too many for that


class Standing(NamedTuple):
    """What is known of the snapshots, by their numbers; asked for where it is needed."""

    scores: Callable[[], Floats]  # [N] the learner's expected score against each
    points: Callable[[], Floats]  # [N] how far each one's rating is above the learner's


def candidates(settings: SelfPlaySettings, count: int) -> range:
    """Numbers of the snapshots that may be drawn, of `count`."""
    if isinstance(settings.sampling, SamplingByNewest):
        newest = ceil(settings.sampling.newest.share * count)
    else:
        newest = count if settings.window == "all" else min(settings.window, count)
    return range(count - newest, count)


def chances_of(settings: SelfPlaySettings, numbers: range, standing: Standing) -> Floats:
    """The chance of each of `numbers` to be drawn; they sum to 1."""
    sampling, chosen = settings.sampling, np.array(numbers)
    weights = np.ones(len(numbers))
    if isinstance(sampling, SamplingByScore):
        score = standing.scores()[chosen]
        hard = sampling.pfsp.weighting == "hard"
        weights = (1.0 - score) ** sampling.pfsp.power if hard else score * (1.0 - score)
    elif isinstance(sampling, SamplingByRating):
        apart = standing.points()[chosen] / sampling.rating.spread
        weights = np.exp(-0.5 * (apart**2 - (apart**2).min()))
    total = weights.sum()
    share = weights / total if total > 0 else np.full(len(numbers), 1.0 / len(numbers))
    least = min(MIN_SHARE, 1.0 / len(numbers))
    return np.asarray(least + (1.0 - least * len(numbers)) * share)


def drawn_line_up(
    settings: SelfPlaySettings, count: int, random: np.random.Generator, standing: Standing
) -> tuple[int, ...]:
    """The snapshots, of `count`, that matches are drawn from until the next swap: all different."""
    numbers = candidates(settings, count)
    chances = chances_of(settings, numbers, standing)
    some = min(settings.at_once, len(numbers))
    places = random.choice(len(numbers), size=some, replace=False, p=chances / chances.sum())
    return tuple(numbers[place] for place in sorted(places.tolist()))

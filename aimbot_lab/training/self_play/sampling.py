"""Which snapshots are met next."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.training.self_play.settings import SelfPlaySettings


def candidates(settings: SelfPlaySettings, count: int) -> range:
    """Numbers of the snapshots that may be drawn, of `count`."""
    newest = count if settings.window == "all" else min(settings.window, count)
    return range(count - newest, count)


def drawn_line_up(
    settings: SelfPlaySettings, count: int, random: np.random.Generator
) -> tuple[int, ...]:
    """The snapshots, of `count`, that matches are drawn from until the next swap: all different."""
    numbers = candidates(settings, count)
    return _drawn(numbers, np.full(len(numbers), 1.0 / len(numbers)), settings.at_once, random)


def _drawn(
    numbers: Sequence[int], chances: np.ndarray, most: int, random: np.random.Generator
) -> tuple[int, ...]:
    some = min(most, len(numbers))
    places = random.choice(len(numbers), size=some, replace=False, p=chances)
    return tuple(numbers[place] for place in sorted(places.tolist()))

"""A replay as lines of coloured text: two pixels to a character, one above the other."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay.episode import Replay
from aimbot_lab.replay.episode_summary import action_words
from aimbot_lab.replay.frames import cell_words, ending_words, goal, lesson_title, player_words
from aimbot_lab.replay.panel import bar_scale
from aimbot_lab.replay.playback import ReplayStep, replay_steps
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.draw import Doings, draw_row

UPPER_HALF = "▀"
RESET = "\x1b[0m"
GREEN, RED, DIM, BOLD = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m"
TEXT_COLUMNS = 30  # beside the picture
MIN_PIXELS = 24
FINER = 5  # drawn this much larger and reduced, which keeps thin lines
GROWN = 1.8  # how much larger the agent and its enemies are drawn, to be seen at all
BAR = 12  # characters of a full bar
CUBE = (0, 95, 135, 175, 215, 255)  # levels of the 256 colours' cube


class Screen(NamedTuple):
    """What a terminal can show."""

    columns: int
    lines: int
    true_colour: bool

    @property
    def pixels(self) -> int:
        """Side of the picture that it has room for."""
        side = min(self.columns - TEXT_COLUMNS, 2 * (self.lines - 1))
        return max(side - side % 2, MIN_PIXELS)


def screens(replay: Replay, screen: Screen) -> Iterator[str]:
    """Lines of text for the beginning of `replay` and for every decision."""
    *_, totals = (step.state.terms[0].copy() for step in replay_steps(replay.episode))
    scale = bar_scale(totals)
    trail: list[np.ndarray] = []
    for step in replay_steps(replay.episode):
        trail.append(step.state.position[0].copy())
        picture = _picture(replay, step, screen.pixels, trail)
        yield _beside(
            half_blocks(picture, true_colour=screen.true_colour), _words(replay, step, scale)
        )


def half_blocks(picture: Picture, *, true_colour: bool) -> Sequence[str]:
    """`picture` [2 N, W, 3] as N lines of W characters."""
    lines = []
    for upper, lower in zip(picture[::2], picture[1::2], strict=True):
        text, last = "", ""
        for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
            colour = _colour(38, above, true_colour) + _colour(48, below, true_colour)
            text += UPPER_HALF if colour == last else colour + UPPER_HALF
            last = colour
        lines.append(text + RESET)
    return lines


def _colour(ground: int, colour: Sequence[int], true_colour: bool) -> str:
    if true_colour:
        return f"\x1b[{ground};2;{colour[0]};{colour[1]};{colour[2]}m"
    red, green, blue = (min(range(6), key=lambda k: abs(CUBE[k] - part)) for part in colour)
    return f"\x1b[{ground};5;{16 + 36 * red + 6 * green + blue}m"


def _picture(replay: Replay, step: ReplayStep, side: int, trail: Sequence[np.ndarray]) -> Picture:
    numbers = step.state.parameters.copy()
    numbers[:, [core.AGENT_RADIUS, core.ENEMY_RADIUS]] *= GROWN
    larger = step.state._replace(parameters=numbers)
    doings = Doings(trail, step.fired, step.hit)
    drawn = draw_row(larger, 0, replay.episode.settings, size=side * FINER, doings=doings)
    return np.array(Image.fromarray(drawn).reduce(FINER))


def _words(replay: Replay, step: ReplayStep, scale: np.ndarray) -> Sequence[str]:
    numbers = step.state.parameters[0]
    period = numbers[core.DECISION_PERIOD] * numbers[core.FIXED_TIMESTEP]
    seconds = step.state.decisions[0] * period
    terms = step.state.terms[0]
    words = [
        f"{BOLD}{one_line(lesson_title(replay))}{RESET}",
        one_line(cell_words(replay)),
        *(one_line(words) for words in [player_words(replay)] if words),
        goal(step.state),
        f"{seconds:.1f} s of {numbers[core.TIME_LIMIT]:g} s",
        "",
        action_words(step.action, fired=step.fired),
        "",
        "reward so far",
    ]
    for term in np.flatnonzero(scale):
        value = float(terms[term])
        full = round(BAR * min(abs(value) / float(scale[term]), 1.0))
        colour = GREEN if value >= 0 else RED
        name = core.REWARD_TERMS[term].replace("_", " ")
        words += [f"{name:15} {value:+8.0f}", f"{colour}{'█' * full}{RESET}"]
    words += ["", f"total {terms.sum():+,.0f}"]
    if step.line is not None:
        won = replay.episode.result.won
        words += ["", f"{GREEN if won else RED}{BOLD}{ending_words(seconds, won=won)}{RESET}"]
    return words


def _beside(picture: Sequence[str], words: Sequence[str]) -> str:
    padded = [*words, *[""] * max(len(picture) - len(words), 0)][: len(picture)]
    pairs = zip(picture, padded, strict=True)
    # What is left of an older line behind a shorter one is wiped out.
    return "\n".join(f"{line} {text}\x1b[K" for line, text in pairs)

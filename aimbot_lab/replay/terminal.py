"""A replay as lines of coloured text: two pixels to a character, one above the other."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.replays import Scene
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay.episode import Replay, cell_words, lesson_title, player_words, replay_steps
from aimbot_lab.replay.frames import term_scale

UPPER_HALF = "▀"
RESET = "\x1b[0m"
GREEN, RED, DIM, BOLD = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m"
OUTCOMES = {WIN: GREEN, DRAW: DIM, LOSS: RED}
TEXT_COLUMNS = 30  # beside the picture
MIN_PIXELS = 24
FINER = 5  # drawn this much larger and reduced, which keeps thin lines
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
    scale, side = term_scale(replay), screen.pixels
    renderer = replay.episode.world.renderer(replay.episode.settings)
    for step in replay_steps(replay.episode):
        drawn = renderer.picture(step.scene, size=side * FINER, coarse=True)
        picture = np.array(Image.fromarray(drawn).reduce(FINER))
        scene, world, spec = step.scene, replay.episode.world, replay.episode.spec
        words = [
            f"{BOLD}{one_line(lesson_title(replay))}{RESET}",
            one_line(cell_words(replay)),
            *(one_line(words) for words in [player_words(replay)] if words),
            scene.goal,
            _time(scene, spec.time_unit),
            "",
            world.action_words(spec, step.action, scene),
            "",
            "reward so far",
        ]
        for term in np.flatnonzero(scale):
            words += _bar(spec.reward_terms[term], float(scene.terms[term]), float(scale[term]))
        words += ["", f"total {scene.terms.sum():+,.0f}"]
        if step.line is not None:
            result = replay.episode.result
            ending = world.ending_words(result.outcome, scene.seconds)
            words += ["", f"{OUTCOMES[result.outcome]}{BOLD}{ending}{RESET}"]
        yield _beside(half_blocks(picture, true_colour=screen.true_colour), words)


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


def _time(scene: Scene, unit: str) -> str:
    """How long the episode lasts so far, of how long at most."""
    limit = "" if scene.time_limit is None else f" of {scene.time_limit:g}"
    if unit == "s":
        return f"{scene.seconds:.1f} s{limit and f'{limit} s'}"
    return f"{scene.seconds:g}{limit} {unit}"


def _bar(term: str, value: float, scale: float) -> Sequence[str]:
    full = round(BAR * min(abs(value) / scale, 1.0))
    colour = GREEN if value >= 0 else RED
    return f"{term.replace('_', ' '):15} {value:+8.0f}", f"{colour}{'█' * full}{RESET}"


def _beside(picture: Sequence[str], words: Sequence[str]) -> str:
    padded = [*words, *[""] * max(len(picture) - len(words), 0)][: len(picture)]
    pairs = zip(picture, padded, strict=True)
    # What is left of an older line behind a shorter one is wiped out.
    return "\n".join(f"{line} {text}\x1b[K" for line, text in pairs)

"""Episodes in a terminal: played by a person, and replayed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from aimbot_lab.foundation.display import GameRequest, GameView, Scene, TerminalPlay
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import Picture, step_buffers
from aimbot_lab.replay.episode import (
    About,
    RecordedEpisode,
    Replay,
    RowRecorder,
    as_replay,
    cell_words,
    lesson_title,
    player_words,
    replay_steps,
)
from aimbot_lab.replay.film import shown_sum, term_scale
from aimbot_lab.worlds.registry import make_world, world_types

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
        total = shown_sum(float(scene.terms.sum()), float(scale.max(initial=0.0)))
        words += ["", f"total {total}"]
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
    words = f"{term.replace('_', ' '):15} {shown_sum(value, scale):>8}"
    return words, f"{colour}{'█' * full}{RESET}"


def _beside(picture: Sequence[str], words: Sequence[str]) -> str:
    padded = [*words, *[""] * max(len(picture) - len(words), 0)][: len(picture)]
    pairs = zip(picture, padded, strict=True)
    # What is left of an older line behind a shorter one is wiped out.
    return "\n".join(f"{line} {text}\x1b[K" for line, text in pairs)


def playable_world(name: str | None = None) -> TerminalPlay:
    """How the world `name` is played in a terminal, or the first that can be.

    Raises ConfigurationError where there is none.
    """
    worlds = world_types()
    found = {key: one.terminal for key, one in worlds.items() if one.terminal is not None}
    if name is None and found:
        return next(iter(found.values()))
    if name is None or name not in found:
        known = ", ".join(found) or "none"
        raise ConfigurationError(f"--world: {name} can't be played in a terminal (valid: {known})")
    return found[name]


class PlaySession:
    """One game after another of what `request` asks for, each recorded.

    `lifted` says whether the fog was ever lifted in the game. Raises ConfigurationError where the
    world has no such game.
    """

    def __init__(self, play: TerminalPlay, request: GameRequest, *, seed: int, fog: bool) -> None:
        settings, scenario = play.game(request)
        self.play, self.seed = play, seed
        self.world: Any = make_world(settings)
        self.world.keep_endings = True
        self.world.set_scenario(scenario)
        self._fog_at_first = fog
        self._buffers = step_buffers(self.world)
        self.begin(seed)

    def begin(self, seed: int) -> None:
        """Begin the game of `seed`, always the same; what runs is broken off."""
        self.seed = seed
        self.world.reset(seed, self._buffers.observations)
        self._recorder = RowRecorder(self.world, 0)
        self._episode: RecordedEpisode | None = None
        self.fog, self.lifted = self._fog_at_first, not self._fog_at_first

    def lift_fog(self) -> None:
        """Show what was never seen, from now to the end of the game, or hide it again."""
        self.fog, self.lifted = not self.fog, True

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self._episode is not None

    def act(self, command: str) -> None:
        """Do what the word says in a game that goes on."""
        actions = np.array([self.play.commands[command]], np.float32)
        batch = self.world.step(actions, self._buffers)
        self._episode = self._recorder.add(actions, batch)

    def view(self) -> GameView:
        """What is seen now."""
        return self.play.view(self.world, fog=self.fog, ended=self.over)

    def window(self) -> Sequence[str]:
        """What the row sees at this moment, in signs."""
        return self.play.window(self.world, ended=self.over)

    def frame(self) -> Mapping[str, Any]:
        """Raw data as plain values."""
        return self.play.frame(self.world, ended=self.over)

    def result_lines(self) -> list[str]:
        """How the game ended: the result line, then its numbers, and whether the fog was lifted."""
        if self._episode is None:
            return []
        numbers = self.play.result(self.world)
        words = ", ".join(f"{name} {value:.6g}" for name, value in numbers.items())
        fog = "; the fog was lifted" if self.lifted else ""
        return [self._episode.line, f"{words}{fog}"]

    def replay(self) -> Replay:
        """The game as a replay. Raises LabError where it did not end."""
        if self._episode is None:
            raise LabError("no replay is saved: the game did not end")
        about: About = {
            "player": "a person",
            "seed": self.seed,
            "fog": "lifted" if self.lifted else "on",
        }
        return as_replay(self._episode, about)

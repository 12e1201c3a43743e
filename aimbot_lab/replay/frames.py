"""Replays as pictures, one per decision."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay import panel
from aimbot_lab.replay.episode import Replay
from aimbot_lab.replay.panel import Panel, PanelText, bar_scale
from aimbot_lab.replay.playback import ReplayStep, replay_steps
from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena import draw
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.draw import Doings, draw_row

COLOURS = (
    *(paint.FLOOR, paint.GRID, paint.BLOCK, paint.BLOCK_EDGE, paint.WALL, paint.OBSTACLE),
    *(paint.ENEMY, paint.ENEMY_DOWN, paint.AGENT, paint.DARK, paint.FIRE_BASE_EDGE, draw.SHOT),
    *(panel.PAPER, panel.INK, panel.FAINT, panel.RULE, panel.GAIN, panel.LOSS),
    paint.blended(paint.BLOCK, paint.FIRE_BASE),
    paint.blended(paint.BLOCK, paint.FIRE_BASE, draw.VIEW),
    paint.blended(paint.BLOCK, draw.VIEW),
    paint.blended(paint.FLOOR, draw.VIEW),
    paint.blended(paint.FLOOR, draw.VIEW, draw.RAY),
    paint.blended(paint.FLOOR, draw.VIEW, draw.ENEMY_RAY),
    paint.blended(paint.FLOOR, draw.TRAIL),
)
"""What pictures hold, where colours are few."""
PANEL_SHARE = 0.5  # width of the panel over that of the arena
SECONDS_HELD = 1.5  # that the end stands


@dataclass(frozen=True)
class FrameStyle:
    """How replays are shown."""

    size: int = 480  # pixels of the arena's side
    panel: bool = True

    @property
    def width(self) -> int:
        """Pixels from left to right, the panel included."""
        return self.size + (round(self.size * PANEL_SHARE) if self.panel else 0)


def frames(replay: Replay, style: FrameStyle) -> Iterator[Picture]:
    """A picture [size, width, 3] of the beginning and one after every decision.

    Raises ReplayError where `replay` can't be played.
    """
    *_, last = (step.state.terms[0].copy() for step in replay_steps(replay.episode))
    artist = _FrameRenderer(replay, style, bar_scale(last))
    for step in replay_steps(replay.episode):
        yield artist.frame(step)


def frames_held(replay: Replay) -> int:
    """How many frames the end of `replay` should stand."""
    return max(1, round(SECONDS_HELD / replay.episode.settings.decision_seconds))


class _FrameRenderer:
    """Draws the moments of one replay; knows where the agent was."""

    def __init__(self, replay: Replay, style: FrameStyle, scale: npt.NDArray[np.float64]) -> None:
        self._replay, self._style, self._scale = replay, style, scale
        self._trail: list[npt.NDArray[np.float64]] = []

    def frame(self, step: ReplayStep) -> Picture:
        settings, style = self._replay.episode.settings, self._style
        self._trail.append(step.state.position[0].copy())
        doings = Doings(self._trail, step.fired, step.hit)
        arena = draw_row(step.state, 0, settings, size=style.size, doings=doings)
        if not style.panel:
            return arena
        whole = Image.new("RGB", (style.width, style.size))
        whole.paste(Image.fromarray(arena), (0, 0))
        beside = Panel(style.width - style.size, style.size, self._panel_text(step))
        whole.paste(beside.picture, (style.size, 0))
        return np.array(whole)

    def _panel_text(self, step: ReplayStep) -> PanelText:
        numbers, result = step.state.parameters[0], self._replay.episode.result
        seconds = self._seconds(step)
        ended = step.line is not None
        return PanelText(
            title=lesson_title(self._replay),
            cell=cell_words(self._replay),
            goal=goal(step.state),
            player=player_words(self._replay),
            action=step.action,
            fired=step.fired,
            mouse_limit=float(numbers[core.MOUSE_LIMIT]),
            terms=step.state.terms[0].copy(),
            earned=step.earned,
            scale=self._scale,
            result=ending_words(seconds, won=result.won) if ended else None,
            won=result.won,
        )

    @staticmethod
    def _seconds(step: ReplayStep) -> float:
        numbers = step.state.parameters[0]
        period = numbers[core.DECISION_PERIOD] * numbers[core.FIXED_TIMESTEP]
        return float(step.state.decisions[0] * period)


def goal(state: ArenaState) -> str:
    """What is to be done in row 0 of `state`, and how much of it is left."""
    up = state.enemy_hits_left[0, : state.enemy_count[0]] > 0
    if state.target[0] == core.GOTO:
        x, z, _ = state.fire_base[0] - np.array([*state.position[0], 0.0])
        return f"reach the circle: {np.hypot(x, z):.0f} m away"
    if state.target[0] == core.ATTACK:
        left = up & state.enemy_is_target[0, : len(up)]
        return f"shoot those in the circle: {int(left.sum())} left"
    return f"shoot them all: {int(up.sum())} left" if state.target[0] == core.FREE else ""


def ending_words(seconds: float, *, won: bool) -> str:
    """How an episode of so many seconds ended; it is lost by the time limit alone."""
    return f"WON after {seconds:.1f} s" if won else "LOST: time is up"


def lesson_title(replay: Replay) -> str:
    """The lesson that `replay` is of, else the run's name."""
    about = replay.about
    if "lesson" not in about:
        return str(about.get("name", ""))
    name = about.get("lesson_name")
    return f"lesson {about['lesson']}" + (f": {name}" if name else "")


def player_words(replay: Replay) -> str:
    """Who played `replay`, as far as it says: which agent, and how its actions were drawn."""
    about = replay.about
    agent = f"{about['agent']} agent" if "agent" in about else ""
    return ", ".join(str(words) for words in (agent, about.get("player")) if words)


def cell_words(replay: Replay) -> str:
    """Target and difficulty of `replay` in words."""
    result = replay.episode.result
    level = f", difficulty {result.difficulty}" if result.difficulty else ""
    return f"{result.target}{level}"

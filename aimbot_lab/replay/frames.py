"""Replays as pictures, one per decision; one by itself, or several in the panes of a grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from aimbot_lab.foundation.replays import Colour, FilmPainter
from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay import caption_panel
from aimbot_lab.replay.caption_panel import Panel, PanelText, bar_scale
from aimbot_lab.replay.episode import Replay, ReplayStep, replay_steps
from aimbot_lab.replay.summary import cell_words, lesson_title, player_words

PANEL_SHARE = 0.5  # width of the panel over that of the picture
SECONDS_HELD = 1.5  # that the end stands


@dataclass(frozen=True)
class FrameStyle:
    """How replays are shown."""

    size: int = 480  # pixels of a picture's side, the panel left out
    panel: bool = True

    @property
    def width(self) -> int:
        """Pixels from left to right, the panel included."""
        return self.size + (round(self.size * PANEL_SHARE) if self.panel else 0)

    def shape_of(self, replay: Replay) -> tuple[int, int]:
        """Height and width of frames of `replay`."""
        painter = self.painter(replay)
        return (self.size, self.width) if painter is None else painter.shape(self.size)

    def painter(self, replay: Replay) -> FilmPainter | None:
        """Who paints whole frames of `replay`; None: a picture and a panel are shown."""
        episode = replay.episode
        return episode.world.film(episode.settings, replay.about) if self.panel else None


def colours(replays: Sequence[Replay]) -> tuple[Colour, ...]:
    """What the pictures of `replays` hold, where colours are few."""
    worlds = (replay.episode.world.colours() for replay in replays)
    return tuple(dict.fromkeys([*chain.from_iterable(worlds), *caption_panel.COLOURS]))


def frames(replay: Replay, style: FrameStyle) -> Iterator[Picture]:
    """A picture of the beginning and one after every decision, each of `style.shape_of(replay)`.

    Raises ReplayError where `replay` can't be played.
    """
    painter = style.painter(replay)
    if painter is not None:
        for step in replay_steps(replay.episode):
            yield painter.frame(step.scene, size=style.size, ended=step.line is not None)
        return
    renderer = _FrameRenderer(replay, style, term_scale(replay))
    for step in replay_steps(replay.episode):
        yield renderer.frame(step)


def term_scale(replay: Replay) -> npt.NDArray[np.float64]:
    """Value [T] of a full bar for each reward term of `replay`."""
    *_, last = (step.scene.terms for step in replay_steps(replay.episode))
    names = replay.episode.spec.reward_terms
    return bar_scale(last, [names.index(one) for one in replay.episode.world.result_terms.values()])


def frames_held(replay: Replay) -> int:
    """How many frames the end of `replay` should stand."""
    return max(1, round(SECONDS_HELD / replay.episode.frame_seconds))


class _FrameRenderer:
    """Draws the moments of one replay."""

    def __init__(self, replay: Replay, style: FrameStyle, scale: npt.NDArray[np.float64]) -> None:
        self._replay, self._style, self._scale = replay, style, scale
        self._world, self._spec = replay.episode.world, replay.episode.spec
        self._renderer = self._world.renderer(replay.episode.settings)

    def frame(self, step: ReplayStep) -> Picture:
        style = self._style
        drawn = self._renderer.picture(step.scene, size=style.size)
        if not style.panel:
            return drawn
        whole = Image.new("RGB", (style.width, style.size))
        whole.paste(Image.fromarray(drawn), (0, 0))
        beside = Panel(style.width - style.size, style.size, self._panel_text(step))
        whole.paste(beside.picture, (style.size, 0))
        return np.array(whole)

    def _panel_text(self, step: ReplayStep) -> PanelText:
        result, world, scene = self._replay.episode.result, self._world, step.scene
        names, ended = self._spec.reward_terms, step.line is not None
        ending = world.result_terms.get(result.outcome)
        return PanelText(
            title=lesson_title(self._replay),
            cell=cell_words(self._replay),
            goal=scene.goal,
            player=player_words(self._replay),
            controls=world.controls(self._spec, step.action, scene),
            names=names,
            terms=scene.terms,
            earned=step.earned,
            scale=self._scale,
            result=world.ending_words(result.outcome, scene.seconds) if ended else None,
            outcome=result.outcome,
            ending=None if ending is None else names.index(ending),
        )


class Grid(NamedTuple):
    """Panes side by side and above each other."""

    columns: int = 1
    rows: int = 1

    @property
    def panes(self) -> int:
        """How many there are."""
        return self.columns * self.rows


def grid_frames(replays: Sequence[Replay], grid: Grid, style: FrameStyle) -> Iterator[Picture]:
    """Pictures [rows * H, columns * W, 3] until the last replay has ended.

    H and W are those of the largest frames; smaller ones are set on white.

    A replay goes to the pane that is free first; how each ended stands for a while, and at the
    end until all have. Raises ReplayError where one can't be played.
    """
    waiting = list(replays)
    shapes = [style.shape_of(replay) for replay in replays]
    room = max(height for height, _ in shapes), max(width for _, width in shapes)
    empty = np.full((*room, 3), 255, np.uint8)
    shown = [empty] * grid.panes
    running: list[Iterator[Picture]] = [iter(()) for _ in range(grid.panes)]
    while True:
        moved = False
        for pane in range(grid.panes):
            picture = next(running[pane], None)
            if picture is None and waiting:
                running[pane] = _held(waiting.pop(0), style)
                picture = next(running[pane])
            if picture is not None:
                shown[pane], moved = _on_white(picture, empty), True
        if not moved:
            return
        yield _together(shown, grid)


def frame_count(replays: Sequence[Replay], grid: Grid) -> int:
    """How many pictures `grid_frames` gives."""
    ends = [0] * grid.panes
    for replay in replays:
        pane = ends.index(min(ends))
        ends[pane] += 1 + len(replay.episode.actions) + frames_held(replay)
    return max(ends)


def _held(replay: Replay, style: FrameStyle) -> Iterator[Picture]:
    picture = None
    for picture in frames(replay, style):
        yield picture
    for _ in range(frames_held(replay)):
        assert picture is not None
        yield picture


def _on_white(picture: Picture, empty: Picture) -> Picture:
    """`picture` in a corner of `empty`, where it is smaller."""
    if picture.shape == empty.shape:
        return picture
    whole = empty.copy()
    whole[: picture.shape[0], : picture.shape[1]] = picture
    return whole


def _together(shown: Sequence[Picture], grid: Grid) -> Picture:
    lines = [shown[row * grid.columns : (row + 1) * grid.columns] for row in range(grid.rows)]
    return np.concatenate([np.concatenate(line, axis=1) for line in lines], axis=0)

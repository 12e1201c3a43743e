"""Several replays in one picture: panes that each show one after another."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay.episode import Replay
from aimbot_lab.replay.frames import FrameStyle, frames, frames_held


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

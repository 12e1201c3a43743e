"""Films of episodes: their frames, and the files."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import floor, log10
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from aimbot_lab.foundation.display import (
    ArrowKeys,
    Choice,
    Colour,
    Control,
    FilmPainter,
    Gauge,
    Indicator,
    Thought,
)
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.foundation.world import Picture
from aimbot_lab.replay.episode import (
    Replay,
    ReplayStep,
    cell_words,
    lesson_title,
    player_words,
    replay_steps,
)

Point = tuple[float, float]

PAPER: Colour = (252, 252, 250)
INK: Colour = (20, 24, 32)
FAINT: Colour = (128, 134, 146)
RULE: Colour = (222, 222, 216)
GAIN: Colour = (34, 139, 84)
LOST: Colour = (208, 36, 48)
PRESSED: Colour = (24, 104, 214)
FIRE: Colour = (255, 120, 0)
COLOURS = (PAPER, INK, FAINT, RULE, GAIN, LOST)
"""What panels hold, where colours are few."""
BANNERS = {WIN: GAIN, DRAW: FAINT, LOSS: LOST}
SMALLEST = 0.7  # of a text's size, before it is cut
MIN_PIXELS = 7.0  # of a text's height
MIN_LINES = 24  # of text from top to bottom: its size follows
ACTION_TOP, REWARDS_TOP, RESULT_TOP = 4.6, 10.2, MIN_LINES - 2.8  # lines from the top
THOUGHT_LINES, MAX_BRANCHES = 2.6, 6  # what a thought takes of the rewards' room; bars of it
KEYS_WIDTH = 6.4  # lines that the arrows take from left to right
MAX_PER_CONTROL = 2.4  # lines
MIN_PER_GAUGE, MIN_PER_CONTROL = 1.7, 0.8  # lines, in fewer of which names stand beside bars
MAX_CONTROLS = 6  # that are shown then
NAME_SHARE = 0.45  # of the width that a name has beside a bar
MAX_PER_TERM = 1.9  # lines
BAR_BELOW = 0.45  # of a term's room is from its name down to its bar
WHOLE_FROM, MAX_DECIMALS = 10.0, 6  # of sums of rewards
BAR_HALF, BAR_TICK = 0.2, 0.4  # lines that a bar and its zero reach up and down


class PanelText(NamedTuple):
    """What a panel says."""

    title: str  # for example the lesson
    cell: str  # target and difficulty
    goal: str  # what is to be done, and what is left of it
    controls: Sequence[Control]  # what the agent does
    names: Sequence[str]  # [T] of the reward terms
    terms: npt.NDArray[np.float64]  # [T] sum of each reward term so far
    earned: npt.NDArray[np.float64]  # [T] what this decision gave
    scale: npt.NDArray[np.float64]  # [T] 0 for a term that is not shown, else a full bar's value
    result: str | None
    outcome: int
    ending: int | None = None  # the reward term that the result alone gives
    player: str = ""  # which agent, and how its actions were drawn
    thinks: bool = False  # whether what the agent thought is known
    thought: Thought | None = None  # None: before the first decision


class Panel:
    """A panel of `width` x `height` pixels that shows `content`."""

    def __init__(self, width: int, height: int, content: PanelText) -> None:
        self._content = content
        self._line = height / MIN_LINES
        self._left, self._right = self._line * 0.8, width - self._line * 0.8
        self.picture = Image.new("RGB", (width, height), PAPER)
        self._draw = ImageDraw.Draw(self.picture)
        self._head()
        # Arrow keys on the left, all else below each other.
        self._rule(ACTION_TOP)
        controls = self._content.controls
        keys = [control for control in controls if isinstance(control, ArrowKeys)]
        others = [control for control in controls if not isinstance(control, ArrowKeys)]
        if keys:
            self._keys(keys[0], (self._left + 2.6 * self._line, ACTION_TOP + 2.9))
        left = self._left + (KEYS_WIDTH * self._line if keys else 0.0)
        above = 1.6  # of the first, and below the last
        gauges = any(isinstance(control, Gauge) for control in others)
        least = MIN_PER_GAUGE if gauges else MIN_PER_CONTROL
        room = REWARDS_TOP - ACTION_TOP - 2 * above  # for all but the last
        beside = room < least * (len(others) - 1)
        if beside:
            if (more := len(others) - MAX_CONTROLS) > 0:
                others = [*others[: MAX_CONTROLS - 1], Choice(f"and {more + 1} more", None)]
            above = 0.9
            room = REWARDS_TOP - ACTION_TOP - 2 * above
        each = min(MAX_PER_CONTROL, room / max(len(others) - 1, 1))
        for place, control in enumerate(others):
            at = left, ACTION_TOP + above + each * place
            if isinstance(control, Gauge):
                self._gauge(control, at, beside=beside)
            elif isinstance(control, Indicator):
                self._indicator(control, at)
            else:
                shown = "" if control.number is None else f" {control.number}"
                self._text(at, f"{control.name}{shown}")
        if self._content.thinks:
            self._thought(self._content.thought)
        self._rewards(REWARDS_TOP + (THOUGHT_LINES if self._content.thinks else 0.0))
        self._result()

    def _text(
        self,
        at: Point,
        text: str,
        *,
        size: float = 0.78,
        fill: Colour = INK,
        anchor: str = "lm",
        share: float = 1.0,
    ) -> None:
        """`text` at (pixels from the left, lines from the top), made to fit the panel's `share`."""
        room = share * (self._right - at[0]) if anchor[0] == "l" else self._right
        text, font = fitted(text, size=self._line * size, room=room)
        place = at[0], at[1] * self._line
        self._draw.text(place, text, fill=fill, font=font, anchor=anchor)

    def _head(self) -> None:
        content = self._content
        self._text((self._left, 1.0), content.title, size=0.92)
        self._text((self._left, 2.1), content.cell)
        self._text((self._left, 3.0), content.goal, fill=FAINT)
        self._text((self._left, 3.9), content.player, fill=FAINT)

    def _keys(self, keys: ArrowKeys, middle: Point) -> None:
        self._key(middle, (0, -1), pressed=keys.up)
        self._key(middle, (0, 1), pressed=keys.down)
        self._key(middle, (-1, 0), pressed=keys.left)
        self._key(middle, (1, 0), pressed=keys.right)

    def _key(self, middle: Point, way: tuple[int, int], *, pressed: bool) -> None:
        line, (right, down) = self._line, way
        x, y = middle[0] + 1.3 * right * line, (middle[1] + 1.3 * down) * line
        tip = x + 0.6 * right * line, y + 0.6 * down * line
        base = x - 0.5 * right * line, y - 0.5 * down * line
        side = 0.6 * down * line, 0.6 * right * line
        corners = [
            tip,
            (base[0] - side[0], base[1] - side[1]),
            (base[0] + side[0], base[1] + side[1]),
        ]
        self._draw.polygon(corners, fill=PRESSED if pressed else RULE)

    def _gauge(self, gauge: Gauge, at: Point, *, beside: bool) -> None:
        (left, top), right = at, self._right
        self._text((left, top), gauge.name, fill=FAINT, share=NAME_SHARE if beside else 1.0)
        if beside:
            left += (NAME_SHARE + 0.05) * (right - left)
        else:
            top += 1.0
        middle, reach = (left + right) / 2, (right - left) / 2
        y = top * self._line
        self._draw.line((left, y, right, y), fill=RULE)
        share = max(-1.0, min(1.0, gauge.share))
        self._bar((middle, top), share * reach, colour=PRESSED)

    def _indicator(self, indicator: Indicator, at: Point) -> None:
        left, y = at[0], at[1] * self._line
        radius = 0.45 * self._line
        box = (left, y - radius, left + 2 * radius, y + radius)
        self._draw.ellipse(box, fill=FIRE if indicator.on else RULE)
        self._text(
            (left + 1.4 * self._line, at[1]), indicator.name, fill=INK if indicator.on else FAINT
        )

    def _thought(self, thought: Thought | None) -> None:
        """The critic's value, and how likely each choice was: what was taken is blue."""
        self._rule(REWARDS_TOP)
        if thought is None:
            return
        value, branches = thought.value, thought.branches[:MAX_BRANCHES]
        words = "" if value is None else f"critic {value:+,.1f}"
        self._text((self._left, REWARDS_TOP + 0.8), words, fill=FAINT)
        line, each = self._line, (self._right - self._left) / max(len(branches), 1)
        for place, (_, shares, taken) in enumerate(branches):
            x, top = self._left + place * each, (REWARDS_TOP + 1.5) * line
            for number, share in enumerate(shares):
                width = 0.94 * each * share
                if width >= 1.0:
                    box = (x, top, x + width - 1.0, top + 0.5 * line)
                    self._draw.rectangle(box, fill=PRESSED if number == taken else RULE)
                x += width

    def _rewards(self, top: float) -> None:
        content = self._content
        self._rule(top)
        self._text((self._left, top + 0.9), "reward so far", fill=FAINT)
        shown = [term for term in range(len(content.names)) if content.scale[term] > 0]
        first = top + 2.1
        room = RESULT_TOP - BAR_TICK - first  # for all names but the last, and that one's bar
        per_term = min(MAX_PER_TERM, room / max(len(shown) - 1 + BAR_BELOW, 1))
        for place, term in enumerate(shown):
            self._reward(term, first + per_term * place, per_term=per_term)

    def _reward(self, term: int, top: float, *, per_term: float) -> None:
        content = self._content
        value = float(content.terms[term])
        colour = GAIN if value >= 0 else LOST
        name = content.names[term].replace("_", " ")
        # A term that was just earned is drawn in full ink.
        self._text((self._left, top), name, fill=INK if content.earned[term] else FAINT)
        self._text((self._right, top), self._sum(value), fill=colour, anchor="rm")
        middle = (self._left + self._right) / 2
        reach = (self._right - self._left) / 2
        share = max(-1.0, min(1.0, value / float(content.scale[term])))
        self._bar((middle, top + BAR_BELOW * per_term), share * reach, colour=colour)

    def _bar(self, start: Point, length: float, *, colour: Colour) -> None:
        x, y, half = start[0], start[1] * self._line, BAR_HALF * self._line
        low, high, tick = *sorted((x, x + length)), BAR_TICK * self._line
        if high - low >= 0.5:
            self._draw.rectangle((low, y - half, high, y + half), fill=colour)
        self._draw.line((x, y - tick, x, y + tick), fill=FAINT)

    def _result(self) -> None:
        content, top = self._content, RESULT_TOP
        self._rule(top)
        total = f"total {self._sum(content.terms.sum())}"
        if content.result is None:
            self._text((self._left, top + 1.4), total, fill=FAINT)
            return
        box = (0, top * self._line, self.picture.width, self.picture.height)
        self._draw.rectangle(box, fill=BANNERS[content.outcome])
        self._text((self._left, top + 1.0), content.result, size=0.95, fill=PAPER)
        if content.ending is not None:
            earned = float(content.terms[content.ending])
            total = f"{content.names[content.ending]} {self._sum(earned)}, {total}"
        self._text((self._left, top + 2.1), total, size=0.7, fill=PAPER)

    def _sum(self, value: float) -> str:
        return shown_sum(value, float(self._content.scale.max(initial=0.0)))

    def _rule(self, top: float) -> None:
        y = top * self._line
        self._draw.line((self._left, y, self._right, y), fill=RULE)


def fitted(
    text: str, *, size: float, room: float
) -> tuple[str, ImageFont.FreeTypeFont | ImageFont.ImageFont]:
    """`text` and a font in which it takes at most `room` pixels.

    The font is `size` pixels high, or smaller down to `SMALLEST` of that; then text is cut.
    """
    for share in (1.0, 0.9, 0.8, SMALLEST):
        font = ImageFont.load_default(max(size * share, MIN_PIXELS))
        if font.getlength(text) <= room:
            return text, font
    while len(text) > 1 and font.getlength(text) > room:
        text = text[:-2] + "…"
    return text, font


def bar_scale(totals: npt.NDArray[np.float64], endings: Sequence[int]) -> npt.NDArray[np.float64]:
    """Value [T] of a full bar for each term of an episode that ends with the sums `totals` [T].

    One scale for all that are shown; 0 for what earned nothing, and for the terms `endings`, which
    the result shows: their bars would dwarf all others.
    """
    sizes = np.abs(totals)
    sizes[list(endings)] = 0.0
    return np.where(sizes > 0, sizes.max(initial=0.0), 0.0)


def shown_sum(value: float, scale: float) -> str:
    """A sum of rewards beside bars of which a full one is worth `scale`: whole from 10 on.

    Below that `scale` has three digits, and all sums of an episode have as many decimals.
    """
    worth = scale or abs(value)
    decimals = min(2 - floor(log10(worth)), MAX_DECIMALS) if 0 < worth < WHOLE_FROM else 0
    return f"{value:+,.{decimals}f}"


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
    return tuple(dict.fromkeys([*chain.from_iterable(worlds), *COLOURS]))


def frames(replay: Replay, style: FrameStyle, *, alone: bool = True) -> Iterator[Picture]:
    """A picture of the beginning and one after every decision, each of `style.shape_of(replay)`.

    `alone`: no other replay is drawn meanwhile. Raises ReplayError where `replay` can't be played.
    """
    painter = style.painter(replay)
    if painter is not None:
        for decision, step in enumerate(replay_steps(replay.episode, alone=alone), -1):
            ended, thought = step.line is not None, replay.thought(decision)
            yield painter.frame(step.scene, size=style.size, ended=ended, thought=thought)
        return
    renderer = _FrameRenderer(replay, style, term_scale(replay))
    for number, step in enumerate(replay_steps(replay.episode, alone=alone), -1):
        yield renderer.frame(step, number)


def term_scale(replay: Replay) -> npt.NDArray[np.float64]:
    """Value [T] of a full bar for each reward term of `replay`."""
    *_, last = (step.scene.terms for step in replay_steps(replay.episode, drawn=False))
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

    def frame(self, step: ReplayStep, decision: int) -> Picture:
        """After a decision, by its number; -1: before the first."""
        style = self._style
        drawn = self._renderer.picture(step.scene, size=style.size)
        if not style.panel:
            return drawn
        whole = Image.new("RGB", (style.width, style.size))
        whole.paste(Image.fromarray(drawn), (0, 0))
        beside = Panel(style.width - style.size, style.size, self._panel_text(step, decision))
        whole.paste(beside.picture, (style.size, 0))
        return np.array(whole)

    def _panel_text(self, step: ReplayStep, decision: int) -> PanelText:
        result, world, scene = self._replay.episode.result, self._world, step.scene
        names, ended = self._spec.reward_terms, step.line is not None
        ending = world.result_terms.get(result.outcome)
        return PanelText(
            title=lesson_title(self._replay),
            cell=cell_words(self._replay),
            goal=scene.goal,
            player=player_words(self._replay),
            thinks=self._replay.mind is not None,
            thought=self._replay.thought(decision),
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
                running[pane] = _held(waiting.pop(0), style, alone=grid.panes == 1)
                picture = next(running[pane])
            if picture is not None:
                shown[pane], moved = _on_white(picture, empty), True
        if not moved:
            return
        lines = [shown[row * grid.columns : (row + 1) * grid.columns] for row in range(grid.rows)]
        yield np.concatenate([np.concatenate(line, axis=1) for line in lines], axis=0)


def frame_count(replays: Sequence[Replay], grid: Grid) -> int:
    """How many pictures `grid_frames` gives."""
    ends = [0] * grid.panes
    for replay in replays:
        pane = ends.index(min(ends))
        ends[pane] += 1 + len(replay.episode.actions) + frames_held(replay)
    return max(ends)


def _held(replay: Replay, style: FrameStyle, *, alone: bool) -> Iterator[Picture]:
    picture = None
    for picture in frames(replay, style, alone=alone):
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


MORE_GIF_COLOURS = 48  # beside those that must be met
LOOKED_AT = 12  # pictures of a GIF from which its colours are chosen
CRF = "23"  # H.264's quality: 0 (all of it) to 51; text stays sharp
GIF_TICK = 0.01  # s, the unit of a GIF's times
FASTEST_GIF = 2  # ticks a picture; viewers slow down what is faster

Pictures = Iterator[Picture]
Colours = Sequence[tuple[int, int, int]]


class Film(NamedTuple):
    """Pictures of one size, and how they are shown."""

    pictures: Pictures
    per_second: float
    colours: Colours = ()  # that must be met where a format has few


Write = Callable[[Path, Film], None]


def write_film(path: Path, film: Film) -> None:
    """Write `film` to the file `path`, whole or not at all.

    Its suffix says how. Raises ConfigurationError for another suffix than .mp4 and .gif, where
    ffmpeg is needed and missing, and where the file can't be written.
    """
    write = WRITERS[check_film(path)]
    try:
        with replaced_whole(path) as fresh:
            write(fresh, film)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--output {path}: can't be written: {reason}") from error


def check_film(path: Path) -> str:
    """The suffix of `path`. Raises ConfigurationError where no film of that kind can be made."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ConfigurationError(f"--output {path}: must end with {' or '.join(WRITERS)}")
    if suffix == ".mp4":
        _ffmpeg()
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"--output {path}: there is no such folder")
    return suffix


def _ffmpeg() -> str:
    """The program: that of the extra, else the machine's own."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        found = shutil.which("ffmpeg")
        if found is None:
            raise ConfigurationError(
                "an MP4 needs ffmpeg: pip install 'aimbot-lab[video]'; a .gif needs nothing more"
            ) from error
        return found


def _write_mp4(path: Path, film: Film) -> None:
    first = next(film.pictures)
    height, width = first.shape[:2]
    # Every player shows yuv420p, which has one colour for two by two pixels.
    size = width - width % 2, height - height % 2
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}"]
    given += ["-r", f"{film.per_second:g}", "-i", "-"]
    made = ["-an", "-c:v", "libx264", "-crf", CRF, "-pix_fmt", "yuv420p", "-movflags", "faststart"]
    command = [_ffmpeg(), "-v", "error", "-y", *given, *made, str(path)]
    with TemporaryFile() as words:
        with Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=words) as ffmpeg:
            _feed(ffmpeg, chain([first], film.pictures), size)
        if ffmpeg.returncode:
            words.seek(0)
            output = words.read().decode(errors="replace").strip().splitlines() or [
                "no reason given"
            ]
            raise LabError(f"ffmpeg could not make the film: {output[-1][:200]}")


def _feed(ffmpeg: "Popen[bytes]", pictures: Pictures, size: tuple[int, int]) -> None:
    assert ffmpeg.stdin is not None
    try:
        for picture in pictures:
            ffmpeg.stdin.write(np.ascontiguousarray(picture[: size[1], : size[0]]).tobytes())
        ffmpeg.stdin.close()
    except BrokenPipeError:
        return  # it ended: its exit code and its output say more
    except BaseException:
        ffmpeg.kill()
        raise


def _write_gif(path: Path, film: Film) -> None:
    first = [Image.fromarray(picture) for picture in islice(film.pictures, LOOKED_AT)]
    palette = _palette(first, film.colours)

    def reduced(picture: Image.Image) -> Image.Image:
        return picture.quantize(palette=palette, dither=Image.Dither.NONE)

    head = reduced(first[0])
    rest = (reduced(picture) for picture in chain(first[1:], map(Image.fromarray, film.pictures)))
    ticks = max(round(1 / film.per_second / GIF_TICK), FASTEST_GIF)
    head.save(path, save_all=True, append_images=rest, duration=ticks * 10, loop=0)


def _palette(pictures: Sequence[Image.Image], colours: Colours) -> Image.Image:
    """`colours`, and the most common of `pictures`.

    The first pictures do not show every colour that comes later.
    """
    sheet = Image.new("RGB", (pictures[0].width, sum(picture.height for picture in pictures)))
    for place, picture in enumerate(pictures):
        sheet.paste(picture, (0, place * picture.height))
    common = sheet.quantize(MORE_GIF_COLOURS, method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in colours for part in colour] + common)
    return palette


WRITERS: Mapping[str, Write] = MappingProxyType({".mp4": _write_mp4, ".gif": _write_gif})

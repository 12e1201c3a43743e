"""Colours of films of matches."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from aimbot_lab.foundation.display import Fighter, Scene, SceneView, Thought
from aimbot_lab.foundation.episodes import DRAW
from aimbot_lab.foundation.world import Float32Array, Picture
from aimbot_lab.worlds import canvas as paint
from aimbot_lab.worlds.arena.core.state import BODY_HEIGHT, CHOICE_WORDS, EYE_HEIGHT, WALL_HEIGHT
from aimbot_lab.worlds.arena.draw import SHOT
from aimbot_lab.worlds.canvas import Opaque, blended, fitted
from aimbot_lab.worlds.duel.core.state import AGENTS, HORIZONTAL, KINDS, VERTICAL, DuelState
from aimbot_lab.worlds.duel.draw import AGENT_COLOURS, MatchRenderer, match_view
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.spec import SEATS, seat_names, verdict

PAPER: Opaque = (252, 252, 250)
INK: Opaque = paint.DARK
QUIET: Opaque = (92, 98, 110)
RULE: Opaque = (222, 222, 216)
WHITE: Opaque = (255, 255, 255)
READY: Opaque = (34, 139, 84)
HURT: Opaque = (255, 40, 40)
DRAWN: Opaque = (92, 98, 110)
NIGHT: Opaque = (16, 20, 26)
OUTER: Opaque = (147, 160, 178)  # walls about the hall
INNER: Opaque = (191, 166, 121)  # boxes in it
SKY: tuple[Opaque, Opaque] = ((76, 93, 112), (38, 47, 58))  # top and horizon
GROUND: tuple[Opaque, Opaque] = ((58, 55, 50), (111, 104, 91))  # horizon and feet
FLASH: Opaque = (255, 210, 94)
FILM_COLOURS = (
    *(PAPER, INK, QUIET, RULE, WHITE, SHOT, READY, HURT, NIGHT, OUTER, INNER, FLASH),
    *(*AGENT_COLOURS, *SKY, *GROUND),
)


FADE, DARKEST, SIDE = 60.0, 0.6, 0.2  # m to the darkest wall, its darkness, that of walls along x
MAX_VIEW = 150.0  # degrees, beyond which a flat picture shows nothing
SPRITE = (64, 116)  # pixels
Floats = npt.NDArray[np.float64]


class WallHits(NamedTuple):
    """What each of W rays meets first."""

    distance: Floats  # [W] m
    along_x: npt.NDArray[np.bool_]  # [W] whether its face lies along x
    box: npt.NDArray[np.int64]  # [W] index of the box, -1: a wall about the hall
    along: Floats  # [W] m along the face


def seen_picture(
    viewer: Fighter,
    other: Fighter,
    boxes: Floats,
    *,
    colour: Opaque,
    size: float,
    shape: tuple[int, int],
) -> Picture:
    """What `viewer` sees of a hall of `size` m with `boxes` [K, 4], and of `other` in `colour`.

    `shape` is height and width in pixels.
    """
    width = shape[1]
    focus = width / 2 / np.tan(np.radians(min(viewer.view_angle, MAX_VIEW)) / 2)
    angles = np.arctan((np.arange(width) + 0.5 - width / 2) / focus)
    walls = cast_walls(viewer, boxes, viewer.yaw + angles, size=size)
    picture = _background(shape)
    depth = walls.distance * np.cos(angles)
    _paint_walls(picture, walls, focus / np.maximum(depth, 0.05), depth)
    _paint_other(picture, viewer, other, angles, walls.distance, colour=colour, focus=focus)
    return picture


def cast_walls(viewer: Fighter, boxes: Floats, bearing: Floats, *, size: float) -> WallHits:
    """What rays of `bearing` [W] meet of the walls of a hall of `size` m and of `boxes` [K, 4].

    Slab method; a box that the viewer stands in is not met.
    """
    way = np.stack([np.sin(bearing), np.cos(bearing)])  # [2, W]
    way = np.where(np.abs(way) < 1e-9, 1e-9, way)
    place = np.array([viewer.x, viewer.z])[:, None]
    outer = np.where(way > 0, (size - place) / way, -place / way)
    distance, along_x = outer.min(axis=0), outer[1] < outer[0]
    box = np.full(bearing.shape, -1, np.int64)
    for number, (low_x, low_z, high_x, high_z) in enumerate(boxes):
        one = (np.array([[low_x], [low_z]]) - place) / way
        two = (np.array([[high_x], [high_z]]) - place) / way
        nearest, farthest = np.minimum(one, two), np.maximum(one, two)
        near, far = nearest.max(axis=0), farthest.min(axis=0)
        met = (near <= far) & (near > 0) & (near < distance)
        distance = np.where(met, near, distance)
        along_x = np.where(met, nearest[1] > nearest[0], along_x)
        box[met] = number
    x, z = place + distance * way
    return WallHits(distance, along_x, box, np.where(along_x, x, z))


def _background(shape: tuple[int, int]) -> Picture:
    height, width = shape
    rows = np.zeros((height, 3))
    half = height // 2
    for part, (first, last) in ((slice(0, half), SKY), (slice(half, height), GROUND)):
        share = np.linspace(0.0, 1.0, len(rows[part]))[:, None]
        rows[part] = np.array(first) * (1 - share) + np.array(last) * share
    return np.repeat(rows[:, None], width, axis=1).astype(np.uint8)


def _paint_walls(picture: Picture, walls: WallHits, scale: Floats, depth: Floats) -> None:
    height = len(picture)
    base = np.where((walls.box < 0)[:, None], np.array(OUTER), np.array(INNER))
    line = walls.along - np.floor(walls.along) < 0.05  # one to each metre
    dark = np.minimum(SIDE * ~walls.along_x + 0.06 * line + DARKEST * depth / FADE, 0.9)
    tone = base * (1 - dark)[:, None] + np.array(NIGHT) * dark[:, None]
    rows = np.arange(height)[:, None] + 0.5 - height / 2
    wall = (rows > -(WALL_HEIGHT - EYE_HEIGHT) * scale) & (rows < EYE_HEIGHT * scale)  # [H, W]
    np.copyto(picture, tone.astype(np.uint8)[None], where=wall[..., None])


def _paint_other(
    picture: Picture,
    viewer: Fighter,
    other: Fighter,
    angles: Floats,
    walls: Floats,
    *,
    colour: Opaque,
    focus: float,
) -> None:
    """The other in the columns whose rays meet its disc before a wall."""
    to_x, to_z = other.x - viewer.x, other.z - viewer.z
    sine, cosine = np.sin(viewer.yaw + angles), np.cos(viewer.yaw + angles)
    along, right = to_x * sine + to_z * cosine, to_x * cosine - to_z * sine
    rest = other.radius**2 - right**2
    met = (rest >= 0) & (along > 0) & (along - np.sqrt(np.maximum(rest, 0.0)) < walls)
    columns = np.flatnonzero(met)
    if not len(columns):
        return
    ahead = to_x * np.sin(viewer.yaw) + to_z * np.cos(viewer.yaw)
    scale, height = focus / max(ahead, 0.3), len(picture)
    sprite = np.array(_sprite(colour, standing=other.health > 0))
    across = (1 - right[columns] / other.radius) / 2
    taken = np.clip((across * SPRITE[0]).astype(int), 0, SPRITE[0] - 1)
    rows = np.arange(height)[:, None] + 0.5 - height / 2
    down = (rows / scale + BODY_HEIGHT - EYE_HEIGHT) / BODY_HEIGHT  # 0 at its head, 1 at its feet
    inside = (down >= 0) & (down < 1)
    lines = np.clip((down * SPRITE[1]).astype(int), 0, SPRITE[1] - 1)
    drawn = sprite[lines, taken[None]]
    shown = inside & (drawn[..., 3] > 0)
    part = picture[:, columns]
    np.copyto(part, drawn[..., :3], where=shown[..., None])
    picture[:, columns] = part


def _sprite(colour: Opaque, *, standing: bool) -> Image.Image:
    """A body of that colour, as wide as the disc that rays meet; lying where it is down."""
    width, height = SPRITE
    sheet = Image.new("RGBA", SPRITE, (0, 0, 0, 0))
    ink = ImageDraw.Draw(sheet)
    dark = blended(colour, (*NIGHT, 110))
    if not standing:
        ink.ellipse((0, height - 16, width - 1, height - 1), fill=colour, outline=dark, width=2)
        return sheet
    ink.rectangle((0, 30, width - 1, 82), fill=colour)
    for left in (0, width - 9):
        ink.rectangle((left, 30, left + 8, 82), fill=dark)
    for left in (10, 36):
        ink.rectangle((left, 82, left + 17, height - 1), fill=colour)
    ink.ellipse((16, 1, 48, 33), fill=colour, outline=dark)
    for left in (22, 35):
        ink.rectangle((left, 11, left + 7, 17), fill=(255, 255, 255))
        ink.rectangle((left + 3, 12, left + 5, 17), fill=(0, 0, 0))
    ink.rectangle((18, 48, 46, 56), fill=dark)
    return sheet


BLACK, GUN, SHINE, STOCK = (0, 0, 0), (43, 49, 56), (74, 83, 94), (29, 34, 39)
GREY = (170, 170, 170)


def draw_hud(picture: Picture, fighter: Fighter, *, wounded: bool) -> Picture:
    """`picture` [H, W, 3] of what `fighter` sees, with its gun and what the last decision brought.

    `wounded`: whether it was hit.
    """
    image = Image.fromarray(picture)
    ink = ImageDraw.Draw(image)
    (width, height), unit = image.size, image.size[1] / 270
    if fighter.health > 0:
        _draw_gun(ink, width / 2, height, unit=unit, fired=fighter.fired)
    _draw_crosshair(ink, fighter, (width / 2, height / 2), unit=unit)
    if wounded:
        ink.rectangle((0, 0, width - 1, height - 1), outline=HURT, width=round(9 * unit))
    told = "DOWN" if fighter.health <= 0 else "IS HIT" if wounded else ""
    if told:
        _tell(ink, told, (width / 2, 0.16 * height), size=22 * unit, fill=HURT)
    elif fighter.hit:
        _tell(ink, "HIT", (width / 2, 0.16 * height), size=22 * unit, fill=SHOT)
    return np.array(image)


def _draw_gun(
    ink: ImageDraw.ImageDraw, x: float, bottom: float, *, unit: float, fired: bool
) -> None:
    y = bottom + (7 * unit if fired else 0.0)
    if fired:
        reach, top = 22 * unit, y - 60 * unit
        ink.ellipse((x - reach, top - reach, x + reach, top + reach), fill=FLASH)
    ink.rectangle((x - 7 * unit, y - 56 * unit, x + 7 * unit, bottom), fill=GUN)
    ink.rectangle((x - 4 * unit, y - 56 * unit, x, bottom), fill=SHINE)
    ink.rectangle((x - 17 * unit, y - 21 * unit, x + 17 * unit, bottom), fill=STOCK)


def _draw_crosshair(
    ink: ImageDraw.ImageDraw, fighter: Fighter, at: tuple[float, float], *, unit: float
) -> None:
    """Four strokes, grey while the gun is not ready; diagonal ones where a shot has hit."""
    x, y = at
    for shift, colour in ((1, BLACK), (0, WHITE if fighter.ready else GREY)):
        for low, high in ((-12 * unit, -4 * unit), (4 * unit, 12 * unit)):
            ink.line((x + low + shift, y + shift, x + high + shift, y + shift), colour, 2)
            ink.line((x + shift, y + low + shift, x + shift, y + high + shift), colour, 2)
    if fighter.hit:
        for a, b in ((-1, -1), (1, -1), (-1, 1), (1, 1)):
            near, far = 8 * unit, 20 * unit
            ends = (x + near * a, y + near * b, x + far * a, y + far * b)
            ink.line(ends, SHOT, round(4 * unit))


def _tell(
    ink: ImageDraw.ImageDraw,
    words: str,
    at: tuple[float, float],
    *,
    size: float,
    fill: tuple[int, int, int],
) -> None:
    text, font = fitted(words, size=size, room=1e9)
    edge = max(round(size / 8), 2)
    ink.text(at, text, fill, font, anchor="mm", stroke_width=edge, stroke_fill=BLACK)


LINES = 24  # of text from top to bottom
MAX_SQUARES = 10  # of health; more are a number alone
ARROWS = {(0, -1): (VERTICAL, 1), (0, 1): (VERTICAL, 2), (1, 0): (HORIZONTAL, 1)}
ARROWS |= {(-1, 0): (HORIZONTAL, 2)}  # way on the picture to column and value of an action


class Doings(NamedTuple):
    """What an agent has done so far."""

    action: Float32Array  # [4] of the last decision
    turn: float  # of the mouse, from -1 to 1 of what it can
    shots: int
    hits: int
    wounded: bool  # in the last decision
    begun: bool  # whether any decision was made
    events: Sequence[str]  # the newest last


def panel_picture(
    fighter: Fighter, doings: Doings, *, colour: Opaque, shape: tuple[int, int]
) -> Picture:
    """The panel, [H, W, 3]."""
    panel = _Panel(shape, colour)
    panel.health(fighter, top=1.2)
    panel.gun(fighter, doings, top=4.4)
    panel.keys(doings, top=8.6)
    panel.events(doings, top=15.0)
    return np.array(panel.image)


class _Panel:
    def __init__(self, shape: tuple[int, int], colour: Opaque) -> None:
        height, width = shape
        self.image = Image.new("RGB", (width, height), PAPER)
        self._draw, self._colour = ImageDraw.Draw(self.image), colour
        self._line = height / LINES
        self._left, self._right = self._line * 0.9, width - self._line * 0.9

    def health(self, fighter: Fighter, *, top: float) -> None:
        """A square for each point, filled while it is there."""
        words = f"health {fighter.health} of {fighter.max_health}"
        is_down = fighter.health <= 0
        self._text("DOWN" if is_down else words, top, fill=HURT if is_down else INK)
        squares = min(fighter.max_health, MAX_SQUARES)
        full = round(squares * fighter.health / max(fighter.max_health, 1))
        side = min(1.2 * self._line, (self._right - self._left) / squares - 3)
        y = (top + 0.8) * self._line
        for number in range(squares):
            x = self._left + number * (side + 3)
            fill = self._colour if number < full else PAPER
            self._draw.rectangle((x, y, x + side, y + side), fill=fill, outline=QUIET)

    def gun(self, fighter: Fighter, doings: Doings, *, top: float) -> None:
        """Whether it can shoot, and how often it did."""
        self._rule(top - 0.8)
        if fighter.ready:
            self._lamp("gun ready", top, READY)
        else:
            self._lamp(f"reloads, {fighter.reload_seconds:.1f} s", top, RULE)
        word = "shot" if doings.shots == 1 else "shots"
        met = f"{doings.shots} {word}, {doings.hits} hit" if doings.shots else "no shot yet"
        self._text(met, top + 1.2)
        if fighter.fired:
            self._lamp("HITS" if fighter.hit else "shoots", top + 2.4, SHOT)
        elif not doings.wounded:
            self._lamp("shoots", top + 2.4, RULE, faint=True)
        if doings.wounded:
            place = self._right - 5.6 * self._line if fighter.fired else self._left
            self._lamp("IS HIT", top + 2.4, HURT, left=place)

    def keys(self, doings: Doings, *, top: float) -> None:
        """Which way it walks and turns."""
        self._rule(top - 0.8)
        self._text("walks", top, quiet=True)
        middle = self._left + 2.4 * self._line, (top + 2.9) * self._line
        for way, (column, value) in ARROWS.items():
            pressed = doings.begun and int(doings.action[column]) == value
            self._arrow(middle, way, fill=self._colour if pressed else RULE)
        x = self._left + 5.6 * self._line
        self._text("turns", top, quiet=True, left=x)
        y, half = (top + 2.9) * self._line, (self._right - x) / 2
        self._draw.line((x, y, self._right, y), fill=QUIET)
        end = x + half + doings.turn * half
        low, high = sorted((x + half, end))
        self._draw.rectangle((low, y - 4, high, y + 4), fill=self._colour)
        self._draw.line((x + half, y - 7, x + half, y + 7), fill=INK)

    def events(self, doings: Doings, *, top: float) -> None:
        """What happened to it, the newest last."""
        self._rule(top - 0.8)
        self._text("so far", top, quiet=True)
        for number, words in enumerate(doings.events[-6:]):
            self._text(words, top + 1.2 * (number + 1))

    def _arrow(self, middle: tuple[float, float], way: tuple[int, int], *, fill: Opaque) -> None:
        line, (right, down) = self._line, way
        x, y = middle[0] + 1.3 * right * line, middle[1] + 1.3 * down * line
        tip = x + 0.6 * right * line, y + 0.6 * down * line
        base = x - 0.5 * right * line, y - 0.5 * down * line
        side = 0.6 * down * line, 0.6 * right * line
        corners = [tip, (base[0] - side[0], base[1] - side[1])]
        self._draw.polygon([*corners, (base[0] + side[0], base[1] + side[1])], fill=fill)

    def _lamp(
        self,
        words: str,
        top: float,
        fill: Opaque,
        *,
        left: float | None = None,
        faint: bool = False,
    ) -> None:
        x, y, radius = self._left if left is None else left, top * self._line, 0.42 * self._line
        self._draw.ellipse((x, y - radius, x + 2 * radius, y + radius), fill=fill, outline=QUIET)
        self._text(words, top, left=x + 1.3 * self._line, quiet=faint)

    def _text(
        self,
        words: str,
        top: float,
        *,
        left: float | None = None,
        quiet: bool = False,
        fill: Opaque = INK,
    ) -> None:
        x = self._left if left is None else left
        text, font = fitted(words, size=0.82 * self._line, room=self._right - x)
        ink = QUIET if quiet else fill
        self._draw.text((x, top * self._line), text, fill=ink, font=font, anchor="lm")

    def _rule(self, top: float) -> None:
        y = top * self._line
        self._draw.line((self._left, y, self._right, y), fill=RULE)


EYES_HEIGHT, BAR_HEIGHT, FOOT_HEIGHT = 9 / 16, 0.085, 0.11  # shares of the map's side
LEGEND = "Home is blue, away red. An orange line is a shot, a ring about an agent a hit."


class MatchFrames:
    """Frames of one match: names and healths, both views, the hall between both panels, a foot.

    Home is on the left, away on the right. The foot tells what is what, and at the end who won.
    """

    def __init__(self, settings: DuelSettings, about: Mapping[str, Any]) -> None:
        self._settings = settings
        self._about = about
        self._names = SEATS
        self._above = MatchRenderer(settings)
        self._shots, self._hits = [0] * AGENTS, [0] * AGENTS
        self._events: tuple[list[str], ...] = tuple([] for _ in SEATS)

    def shape(self, size: int) -> tuple[int, int]:
        """Height and width of a frame whose map is `size` pixels a side."""
        bar, eyes, foot = _heights(size)
        return bar + eyes + size + foot, 2 * size

    def frame(
        self, scene: Scene, *, size: int, ended: bool, thought: Thought | None = None
    ) -> Picture:
        """The match at one moment, with what home thought."""
        state: DuelState = scene.state
        view = match_view(state, 0, rays=self._settings.rays.count)
        self._names = seat_names(self._about, KINDS[int(state.kind[0])])
        self._note(view, scene.seconds)
        bar, eyes, foot = _heights(size)
        height, width = self.shape(size)
        whole = Image.new("RGB", (width, height), PAPER)
        for agent in range(AGENTS):
            whole.paste(self._bar(view.fighters[agent], agent, (bar, size)), (agent * size, 0))
            seen = Image.fromarray(self._seen(view, agent, (eyes, size)))
            whole.paste(seen, (agent * size, bar))
            ImageDraw.Draw(whole).line((size, bar, size, bar + eyes), PAPER, 4)
            panel = panel_picture(
                view.fighters[agent],
                self._doings(state, view, agent),
                colour=AGENT_COLOURS[agent],
                shape=(size, size // 2),
            )
            left = agent * (width - size // 2)
            whole.paste(Image.fromarray(panel), (left, bar + eyes))
        middle = Image.fromarray(self._above.picture(scene, size=size))
        whole.paste(middle, (size // 2, bar + eyes))
        whole.paste(self._foot(state, scene, (foot, width), ended, thought), (0, height - foot))
        return np.array(whole)

    def _note(self, view: SceneView, seconds: float) -> None:
        """Count what the last decision brought."""
        for agent, fighter in enumerate(view.fighters):
            self._shots[agent] += fighter.fired
            self._hits[agent] += fighter.hit
            if fighter.hit:
                self._events[agent].append(f"{seconds:4.1f} s hits {SEATS[1 - agent]}")
                self._events[1 - agent].append(f"{seconds:4.1f} s is hit by {SEATS[agent]}")
        for agent, fighter in enumerate(view.fighters):
            if fighter.health <= 0:
                self._events[agent].append(f"{seconds:4.1f} s is down")

    def _doings(self, state: DuelState, view: SceneView, agent: int) -> Doings:
        limit = self._settings.mouse_limit
        action: Float32Array = state.held[agent]
        return Doings(
            action=action,
            turn=max(-1.0, min(float(state.mouse[agent]) / limit, 1.0)),
            shots=self._shots[agent],
            hits=self._hits[agent],
            wounded=view.fighters[1 - agent].hit,
            begun=bool(state.seats.decisions[agent] > 0),
            events=self._events[agent],
        )

    def _bar(self, fighter: Fighter, agent: int, shape: tuple[int, int]) -> Image.Image:
        """Who plays here, on its colour."""
        height, width = shape
        bar = Image.new("RGB", (width, height), AGENT_COLOURS[agent])
        ink = ImageDraw.Draw(bar)
        health = f"{fighter.health} of {fighter.max_health}"
        words = self._names[agent]
        if words != SEATS[agent]:
            words = f"{SEATS[agent]}: {words}"
        _, small = fitted(health, size=0.5 * height, room=width)
        room = small.getlength(health) + height
        text, font = fitted(words, size=0.52 * height, room=width - 2 * room)
        ink.text((0.4 * height, height / 2), text, fill=WHITE, font=font, anchor="lm")
        ink.text((width - 0.4 * height, height / 2), health, fill=WHITE, font=small, anchor="rm")
        heart = (width - 0.4 * height - small.getlength(health) - 0.55 * height, 0.5 * height)
        _draw_heart(ink, heart, 0.2 * height)
        return bar

    def _seen(self, view: SceneView, agent: int, shape: tuple[int, int]) -> Picture:
        me, other = view.fighters[agent], view.fighters[1 - agent]
        picture = seen_picture(
            me,
            other,
            np.array(view.boxes).reshape(-1, 4),
            colour=AGENT_COLOURS[1 - agent],
            size=view.size,
            shape=shape,
        )
        return draw_hud(picture, me, wounded=other.hit)

    def _foot(
        self,
        state: DuelState,
        scene: Scene,
        shape: tuple[int, int],
        ended: bool,
        thought: Thought | None,
    ) -> Image.Image:
        """What home thought, and what is what; at the end who won, and why."""
        height, width = shape
        names = (self._named(0), self._named(1))
        if not ended:
            limit = scene.time_limit or 0.0
            first = f"{scene.seconds:.1f} s of {limit:g} s{_thought_words(thought)}"
            return _lines(shape, first, LEGEND, ground=PAPER, ink=(INK, QUIET))
        decides = self._settings.on_timeout == "health"
        outcome, who, why = verdict(state, names=names, decides=decides)
        ground = DRAWN if outcome == DRAW else AGENT_COLOURS[outcome < DRAW]
        first = f"{who} after {scene.seconds:.1f} s"
        return _lines((height, width), first[0].upper() + first[1:], why, ground=ground)

    def _named(self, agent: int) -> str:
        name = self._names[agent]
        return SEATS[agent] if name == SEATS[agent] else f"{SEATS[agent]} ({name})"


def _thought_words(thought: Thought | None) -> str:
    """The value that home's critic expects, and how likely its choices were."""
    if thought is None:
        return ""
    value = "" if thought.value is None else f", home expects {thought.value:+.1f}"
    taken = zip(CHOICE_WORDS, thought.branches, strict=False)
    likely = [
        f"{words[number]} {100 * shares[number]:.0f} %" for words, (_, shares, number) in taken
    ]
    return value + (f": {', '.join(likely)}" if likely else "")


def _heights(size: int) -> tuple[int, int, int]:
    """Pixels of the bars, the views and the foot; all even, as films want it."""
    bar, eyes, foot = (2 * round(size * s / 2) for s in (BAR_HEIGHT, EYES_HEIGHT, FOOT_HEIGHT))
    return bar, eyes, foot


def _lines(
    shape: tuple[int, int],
    first: str,
    second: str,
    *,
    ground: tuple[int, int, int],
    ink: tuple[tuple[int, int, int], tuple[int, int, int]] = (WHITE, WHITE),
) -> Image.Image:
    height, width = shape
    foot = Image.new("RGB", (width, height), ground)
    draw = ImageDraw.Draw(foot)
    for words, place, size, fill in ((first, 0.3, 0.42, ink[0]), (second, 0.74, 0.34, ink[1])):
        text, font = fitted(words, size=size * height, room=width - height)
        draw.text((width / 2, place * height), text, fill=fill, font=font, anchor="mm")
    return foot


def _draw_heart(ink: ImageDraw.ImageDraw, middle: tuple[float, float], reach: float) -> None:
    x, y = middle
    for side in (-1, 1):
        centre = x + side * reach / 2
        ink.ellipse((centre - reach * 0.55, y - reach, centre + reach * 0.55, y), fill=WHITE)
    ink.polygon([(x - reach, y - 0.4 * reach), (x + reach, y - 0.4 * reach), (x, y + reach)], WHITE)

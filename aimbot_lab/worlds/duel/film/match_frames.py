"""Whole frames of a film of a match."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from aimbot_lab.foundation.episodes import DRAW
from aimbot_lab.foundation.replays import Scene
from aimbot_lab.foundation.scenes import Fighter, SceneView
from aimbot_lab.foundation.world import Float32Array, Picture
from aimbot_lab.worlds.duel.core.state import AGENTS, DuelState
from aimbot_lab.worlds.duel.film.eyes import seen_picture
from aimbot_lab.worlds.duel.film.hud import draw_hud
from aimbot_lab.worlds.duel.film.palette import AGENTS as COLOURS
from aimbot_lab.worlds.duel.film.palette import DRAWN, INK, PAPER, QUIET, WHITE
from aimbot_lab.worlds.duel.film.side_panel import Doings, fitted, panel_picture
from aimbot_lab.worlds.duel.kinds import KINDS
from aimbot_lab.worlds.duel.replays.renderer import MatchRenderer
from aimbot_lab.worlds.duel.replays.words import SEATS, seat_names, verdict
from aimbot_lab.worlds.duel.scenes.view import match_view
from aimbot_lab.worlds.duel.settings import DuelSettings

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

    def frame(self, scene: Scene, *, size: int, ended: bool) -> Picture:
        """The match at one moment."""
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
                colour=COLOURS[agent],
                shape=(size, size // 2),
            )
            left = agent * (width - size // 2)
            whole.paste(Image.fromarray(panel), (left, bar + eyes))
        middle = Image.fromarray(self._above.picture(scene, size=size))
        whole.paste(middle, (size // 2, bar + eyes))
        whole.paste(self._foot(state, scene, (foot, width), ended=ended), (0, height - foot))
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
        bar = Image.new("RGB", (width, height), COLOURS[agent])
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
            colour=COLOURS[1 - agent],
            size=view.size,
            shape=shape,
        )
        return draw_hud(picture, me, wounded=other.hit)

    def _foot(
        self, state: DuelState, scene: Scene, shape: tuple[int, int], *, ended: bool
    ) -> Image.Image:
        """What is what; at the end who won, and why."""
        height, width = shape
        names = (self._named(0), self._named(1))
        if not ended:
            limit = scene.time_limit or 0.0
            first = f"{scene.seconds:.1f} s of {limit:g} s"
            return _lines(shape, first, LEGEND, ground=PAPER, ink=(INK, QUIET))
        decides = self._settings.on_timeout == "health"
        outcome, who, why = verdict(state, names=names, decides=decides)
        ground = DRAWN if outcome == DRAW else COLOURS[outcome < DRAW]
        first = f"{who} after {scene.seconds:.1f} s"
        return _lines((height, width), first[0].upper() + first[1:], why, ground=ground)

    def _named(self, agent: int) -> str:
        name = self._names[agent]
        return SEATS[agent] if name == SEATS[agent] else f"{SEATS[agent]} ({name})"


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

"""Colours of films of matches."""

from aimbot_lab.worlds.arena import canvas as paint
from aimbot_lab.worlds.arena.canvas import Opaque

AGENTS: tuple[Opaque, Opaque] = (paint.AGENT, paint.ENEMY)  # home is blue, away red
PAPER: Opaque = (252, 252, 250)
INK: Opaque = paint.DARK
QUIET: Opaque = (92, 98, 110)
RULE: Opaque = (222, 222, 216)
WHITE: Opaque = (255, 255, 255)
SHOT: Opaque = (255, 120, 0)
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
    *(*AGENTS, *SKY, *GROUND),
)

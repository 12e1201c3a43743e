"""The parts that the panel has, in the order of their tabs."""

from collections.abc import Mapping
from types import MappingProxyType

from aimbot_lab.panel.server.part import Part
from aimbot_lab.panel.server.parts.play import PLAY
from aimbot_lab.panel.server.parts.replays import REPLAYS
from aimbot_lab.panel.server.parts.start import START
from aimbot_lab.panel.server.parts.sweep import SWEEP
from aimbot_lab.panel.server.parts.test import TEST
from aimbot_lab.panel.server.parts.training import TRAINING
from aimbot_lab.panel.server.parts.watch import WATCH

_IN_ORDER = (START, TRAINING, WATCH, TEST, PLAY, REPLAYS, SWEEP)
PARTS: Mapping[str, Part] = MappingProxyType({part.name: part for part in _IN_ORDER})

"""Which worlds exist."""

from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings


def make_world(settings: ArenaSettings) -> BatchWorld:
    """The world that `settings` describe, not yet reset."""
    return Arena(settings)

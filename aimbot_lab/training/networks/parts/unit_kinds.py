"""Which kinds of units a network encodes, and which an agent may aim at; loads no torch."""

from collections.abc import Sequence

from aimbot_lab.foundation.unit_block import UnitBlock
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.settings import NetworkSettings


def encoded_blocks(settings: NetworkSettings, spec: WorldSpec) -> tuple[UnitBlock, ...]:
    """The kinds of units that have an encoder, in the world's order."""
    if settings.units is None:
        return ()
    kinds = settings.units.kinds
    return tuple(block for block in spec.units if kinds is None or block.kind in kinds)


def target_blocks(spec: WorldSpec) -> tuple[UnitBlock, ...]:
    """The kinds of units that a target head may choose from, in the world's order."""
    return tuple(block for block in spec.units if block.target)


def target_slots(blocks: Sequence[UnitBlock]) -> int:
    """How many units there are to choose from at most."""
    return sum(block.slots for block in blocks)

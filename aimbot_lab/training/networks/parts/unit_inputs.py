"""How many numbers an encoder is shown of a unit; loads no torch."""

from aimbot_lab.foundation.unit_block import UnitBlock

PLACE_INPUTS = 5  # ahead and right over the place's scale, unit vector, closeness


def input_size(block: UnitBlock) -> int:
    """Numbers that an encoder is shown of each unit of `block`."""
    labels = sum(map(len, block.labels.values()))
    place = PLACE_INPUTS if block.place else 0
    distance, fixed = block.distance is not None, int(block.fixed.shape[1])
    return len(plain_features(block)) + labels + distance + place + fixed


def plain_features(block: UnitBlock) -> list[str]:
    """Features that are shown over their declared ranges."""
    special = {block.seen, block.distance, *(block.place or ()), *block.labels}
    return [name for name in block.features if name not in special]

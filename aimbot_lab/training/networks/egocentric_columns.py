"""Which observations can be seen from the agent; loading this module loads no torch."""

from collections.abc import Sequence

EGOCENTRIC = 5  # columns that are worked out of these
COLUMNS = {
    "base_x": "fire_base_x",
    "base_z": "fire_base_z",
    "x": "agent_x",
    "z": "agent_z",
    "cosine": "cos_yaw",
    "sine": "sin_yaw",
    "diameter": "fire_base_diameter",
}


def has_egocentric_columns(names: Sequence[str]) -> bool:
    """Whether an observation says where the agent and its target are, and ends with rays."""
    rays = [name for name in names if name.startswith("ray_") and name.endswith("_distance")]
    return set(COLUMNS.values()) <= set(names) and bool(rays) and names[-1] == rays[-1]

"""One row's raw data as plain values, in the form of Kaiwu's Gorge Walk."""

from typing import Any

from aimbot_lab.worlds.gorge.core.state import SIDE, SITES, GorgeState, MapTables

HERO_ID = 112  # the only hero
TREASURE = 1  # the only kind of organ


def frame_of(state: GorgeState, maps: MapTables, row: int) -> dict[str, Any]:
    """What there is in `row` after its last step; an organ's `status` is 1 when it is taken."""
    at, placed, left = int(state.map[row]), int(state.placed[row]), int(state.left[row])
    organs = [
        {
            "sub_type": TREASURE,
            "config_id": site,
            "pos": list(divmod(int(maps.sites[at, site]), SIDE)),
            "status": 1 - (left >> site & 1),
            "reward": int(maps.points[at, site]),
        }
        for site in range(SITES)
        if placed >> site & 1
    ]
    hero = {
        "hero_id": HERO_ID,
        "treasure_count": (placed & ~left).bit_count(),
        "pos": [int(state.x[row]), int(state.z[row])],
    }
    return {
        "step_no": int(state.steps[row]),
        "heroes": [hero],
        "organs": organs,
        "score": float(state.step_score[row]),
        "total_score": float(state.score[row]),
    }

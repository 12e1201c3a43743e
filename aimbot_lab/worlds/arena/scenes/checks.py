"""Where on a row's floor something may be placed; each fault is the end of a line.

Touching is allowed. Lengths are those in force in the row's episode.
"""

from collections.abc import Sequence
from math import hypot, isfinite
from typing import Any, NamedTuple

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.core import state as core
from aimbot_lab.worlds.arena.core.state import ArenaState
from aimbot_lab.worlds.arena.scenes.records import PlacedBlock

TOUCHING = 1e-9  # m of overlap that counts as touching

Place = tuple[float, float]  # m, x and z


class Things(NamedTuple):
    """What stands in the way on a floor."""

    floor_size: float  # m
    enemy_radius: float  # m
    obstacles: Sequence[Sequence[float]]  # m, min x, min z, max x, max z
    enemies: Sequence[Sequence[float]]  # m, x and z of the living


def things_of(state: ArenaState, row: int) -> Things:
    """What stands in the way in `row`."""
    count = int(state.enemy_count[row])
    alive = state.enemy_hits_left[row, :count] > 0
    return Things(
        floor_size=float(state.parameters[row, core.FLOOR_SIZE]),
        enemy_radius=float(state.parameters[row, core.ENEMY_RADIUS]),
        obstacles=state.obstacles[row, : int(state.obstacle_count[row])].tolist(),
        enemies=state.enemies[row, :count][alive].tolist(),
    )


def checked_place(at: Any) -> Place:
    """`at` as two numbers. Raises MisuseError for anything else."""
    try:
        x, z = map(float, at)
    except (TypeError, ValueError):
        raise MisuseError(f"at: must be two numbers, x and z in metres (got {at!r})") from None
    if not (isfinite(x) and isfinite(z)):
        raise MisuseError(f"at: must be two finite numbers (got {x:g}, {z:g})")
    return x, z


def checked_turns(turns: Any) -> int:
    """`turns` as quarter turns. Raises MisuseError for anything but 0 to 3."""
    if isinstance(turns, bool) or not isinstance(turns, int) or not 0 <= turns <= 3:
        raise MisuseError(f"turns: must be 0, 1, 2 or 3 quarter turns (got {turns!r})")
    return turns


def disc_fault(things: Things, at: Place, radius: float) -> str | None:
    """What a disc at `at` would overlap of floor, obstacles and living enemies; None: nothing."""
    if min(at) < radius - TOUCHING or max(at) > things.floor_size - radius + TOUCHING:
        return f"it is outside the floor, {things.floor_size:g} m wide"
    if any(_gap(at, box) < radius - TOUCHING for box in things.obstacles):
        return "it is over an obstacle"
    reach = radius + things.enemy_radius - TOUCHING
    if any(hypot(at[0] - x, at[1] - z) < reach for x, z in things.enemies):
        return "it is over an enemy"
    return None


def enemy_fault(state: ArenaState, row: int, at: Place) -> str | None:
    """Why an enemy can't stand at `at`; None: it can."""
    things = things_of(state, row)
    agent_x, agent_z = state.position[row].tolist()
    reach = things.enemy_radius + float(state.parameters[row, core.AGENT_RADIUS]) - TOUCHING
    if hypot(at[0] - agent_x, at[1] - agent_z) < reach:
        return "it is over the agent"
    return disc_fault(things, at, things.enemy_radius)


def agent_fault(state: ArenaState, row: int, at: Place) -> str | None:
    """Why the agent can't stand at `at`; None: it can."""
    return disc_fault(things_of(state, row), at, float(state.parameters[row, core.AGENT_RADIUS]))


def block_fault(
    state: ArenaState, row: int, at: Place, blocks: Sequence[PlacedBlock]
) -> str | None:
    """Why a block can't have its middle at `at`, beside the `blocks` there are; None: it can.

    It keeps the distances of drawn blocks to the agent and to the outer walls, and the latter to
    other blocks too, so that no door is shut and nothing is won at once.
    """
    half, numbers, things = core.BLOCK_SIZE / 2, state.parameters[row], things_of(state, row)
    box = at[0] - half, at[1] - half, at[0] + half, at[1] + half
    gap = float(numbers[core.BLOCK_GAP_TO_WALLS])
    if min(box) < gap - TOUCHING or max(box) > things.floor_size - gap + TOUCHING:
        return f"it is outside the floor, or nearer than {gap:g} m to its edge"
    keep = float(numbers[core.AGENT_RADIUS] + numbers[core.BLOCK_GAP_TO_AGENT])
    if _gap(state.position[row].tolist(), box) < keep - TOUCHING:
        return "it is over the agent, or too near to it"
    for block in blocks:
        apart = max(abs(box[0] - block.x), abs(box[1] - block.z)) - core.BLOCK_SIZE
        if apart < gap - TOUCHING:
            return f"it is over another block, or nearer than {gap:g} m to it"
    if any(_gap(place, box) < things.enemy_radius - TOUCHING for place in things.enemies):
        return "it is over an enemy"
    return None


def _gap(at: Sequence[float], box: Sequence[float]) -> float:
    """Metres from a point to a box."""
    return hypot(max(box[0] - at[0], 0.0, at[0] - box[2]), max(box[1] - at[1], 0.0, at[1] - box[3]))

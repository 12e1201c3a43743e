"""The best plan of a map, the distances it rests on, and maps that are made at random.

The best walk past some treasures is found by dynamic programming over (treasures taken, the last
one), after Held and Karp, "A dynamic programming approach to sequencing problems" (1962). A state
keeps every pair of steps and points that no other one beats in both: with decaying points the
shortest way is not always the best, as later treasures are worth less.

Generated maps are valleys that wind and branch. Noise is blurred twice; the road follows the lines
on which it has its mean. Whole numbers make the same maps on every machine.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.foundation.kernels.rng import UInt64Array, uniform_index

Heights = npt.NDArray[np.int64]
NOISE = 1 << 20  # different values of a cell
REACH = 2  # cells each way of a blur


@inlined
def blur(heights: Heights, blurred: Heights) -> None:
    """Write the sum of the cells around each of `heights` [W, H], its edge repeated beyond it."""
    width, height = heights.shape
    for x in range(width):
        for z in range(height):
            total = 0
            for near_x in range(x - REACH, x + REACH + 1):
                for near_z in range(z - REACH, z + REACH + 1):
                    inside_x = min(max(near_x, 0), width - 1)
                    total += heights[inside_x, min(max(near_z, 0), height - 1)]
            blurred[x, z] = total


@kernel
def draw_heights(streams: UInt64Array, row: int, heights: Heights, scratch: Heights) -> None:
    """Write how far each cell lies above the valleys' floor, all at least 0, to `heights` [W, H].

    Draws from stream `row`. `scratch` has the shape of `heights`.
    """
    width, height = heights.shape
    for x in range(width):
        for z in range(height):
            heights[x, z] = uniform_index(streams, row, NOISE)
    blur(heights, scratch)
    blur(scratch, heights)
    total = 0
    for x in range(width):
        for z in range(height):
            total += heights[x, z]
    mean = total // (width * height)
    for x in range(width):
        for z in range(height):
            heights[x, z] = abs(heights[x, z] - mean)


@kernel
def draw_index(streams: UInt64Array, row: int, count: int) -> int:
    """A whole number in [0, count), drawn from stream `row`."""
    return uniform_index(streams, row, count)


Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]

DX = (0, 0, -1, 1)  # up, down, left, right
DZ = (1, -1, 0, 0)
NO_WAY = -1
NO_CELL = -1


@inlined
def is_wall(walls: Bools, x: int, z: int) -> bool:
    """Whether (x, z) is an obstacle of `walls` [W, H], or lies beyond them."""
    if x < 0 or z < 0 or x >= walls.shape[0] or z >= walls.shape[1]:
        return True
    return bool(walls[x, z])


@kernel
def fill_distances(
    walls: Bools, target: int, closed: int, queue: Int32s, distances: Int32s
) -> None:
    """Write the steps from each cell of `walls` [W, H] to `target` into `distances` [W, H].

    -1 where no way leads there. `target` and `closed`, a cell that no way enters or leaves (-1:
    none), are numbers H x + z; a target that is closed or a wall is reached from nowhere.
    `queue` [W H] is scratch.
    """
    height = walls.shape[1]
    for x in range(walls.shape[0]):
        for z in range(height):
            distances[x, z] = NO_WAY
    if target == closed or walls[target // height, target % height]:
        return
    distances[target // height, target % height] = 0
    queue[0] = target
    first, after = 0, 1
    while first < after:
        x, z = queue[first] // height, queue[first] % height
        first += 1
        for action in range(4):
            next_x, next_z = x + DX[action], z + DZ[action]
            if is_wall(walls, next_x, next_z) or next_x * height + next_z == closed:
                continue
            if distances[next_x, next_z] == NO_WAY:
                distances[next_x, next_z] = distances[x, z] + 1
                queue[after] = next_x * height + next_z
                after += 1


Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
FULL = -1
NO_ENTRY = -1


class Legs(NamedTuple):
    """Steps of the shortest ways between K treasures with the end closed; -1: no way."""

    from_start: Int32s  # [K] steps
    between: Int32s  # [K, K] steps from row to column
    to_end: Int32s  # [K] steps
    points: Floats  # [K] of each treasure


class Rules(NamedTuple):
    """What a walk is worth."""

    max_steps: int
    end_score: float  # on arrival
    step_score: float  # on arrival, for every step that is left
    decay: float  # 1: points x (1 - steps / max_steps); 0: points


class Routes(NamedTuple):
    """Walks past treasures, by state: the set of those taken x K + the last one."""

    first: Int64s  # [K 2**K + 1] each state's first entry; by steps, both rising
    steps: Int32s  # [C] of the walk to the last treasure
    points: Floats  # [C] earned by then
    before: Int64s  # [C] the entry without the last treasure, -1: the start


class Walk(NamedTuple):
    """A walk to the last treasure that it takes, or to none."""

    steps: int
    points: float
    to_end: int  # steps from there, -1: no way


class Bests(NamedTuple):
    """The best walk that takes just the treasures of a set, for each of the sets."""

    score: Floats  # [2**K], minus infinity where there is none
    entry: Int64s  # [2**K] of the routes; -1: no treasure
    steps: Int32s  # [2**K] until it arrives, or to the last treasure where it does not
    arrives: Bools  # [2**K]


@inlined
def gained(legs: Legs, rules: Rules, treasure: int, steps: int) -> float:
    """The points of `treasure` taken in step `steps`."""
    share: float = 1.0 - rules.decay * steps / rules.max_steps
    return float(legs.points[treasure] * share)


@inlined
def next_of(legs: Legs, routes: Routes, cursors: Int64s, rest: int, last: int) -> int:
    """The treasure whose next entry arrives at `last` soonest, at a tie with most points; or -1.

    `cursors` [K] holds the next entry of each state (`rest`, treasure).
    """
    count = legs.points.size
    found, found_steps = -1, 0
    for previous in range(count):
        entry = cursors[previous]
        if (rest >> previous) & 1 == 0 or entry == routes.first[rest * count + previous + 1]:
            continue
        if legs.between[previous, last] == NO_WAY:
            continue
        steps = routes.steps[entry] + legs.between[previous, last]
        if (
            found < 0
            or steps < found_steps
            or (steps == found_steps and routes.points[entry] > routes.points[cursors[found]])
        ):
            found, found_steps = previous, steps
    return found


@inlined
def append(routes: Routes, entry: int, steps: int, points: float, before: int) -> None:
    """Write one entry."""
    routes.steps[entry] = steps
    routes.points[entry] = points
    routes.before[entry] = before


@inlined
def merge(legs: Legs, rules: Rules, routes: Routes, cursors: Int64s, state: int, after: int) -> int:
    """Write the walks of `state` from entry `after` on; the entry after them, or -1: no space.

    The walks of each treasure before the last come by rising steps, so that one is kept where its
    points are more than of all before it.
    """
    count = legs.points.size
    last = state % count
    rest = (state // count) ^ (1 << last)
    for previous in range(count):
        cursors[previous] = routes.first[rest * count + previous]
    most = -1.0
    while True:
        previous = next_of(legs, routes, cursors, rest, last)
        if previous < 0:
            return after
        entry = cursors[previous]
        cursors[previous] += 1
        steps = routes.steps[entry] + legs.between[previous, last]
        if steps > rules.max_steps:
            return after
        points = routes.points[entry] + gained(legs, rules, last, steps)
        if points > most:
            if after == routes.steps.size:
                return FULL
            append(routes, after, steps, points, entry)
            after += 1
            most = points


@kernel
def fill_routes(legs: Legs, rules: Rules, routes: Routes, cursors: Int64s) -> int:
    """Write every walk within the limit that is worth keeping; their number, or -1: no space.

    `cursors` [K] is scratch.
    """
    count = legs.points.size
    after = 0
    for state in range(count << count):
        routes.first[state] = after
        last, taken = state % count, state // count
        if taken == 1 << last:
            steps = legs.from_start[last]
            if steps != NO_WAY and steps <= rules.max_steps:
                if after == routes.steps.size:
                    return FULL
                append(routes, after, steps, gained(legs, rules, last, steps), NO_ENTRY)
                after += 1
        elif (taken >> last) & 1:
            after = merge(legs, rules, routes, cursors, state, after)
            if after == FULL:
                return FULL
    routes.first[count << count] = after
    return after


@inlined
def keep_better(bests: Bests, rules: Rules, taken: int, entry: int, walk: Walk) -> None:
    """Note the walk of `entry` where it beats what is noted: by score, arrival, fewer steps."""
    steps, score, to_end = walk
    arrives = to_end != NO_WAY and steps + to_end <= rules.max_steps
    if arrives:
        steps += to_end
        score += rules.end_score + rules.step_score * (rules.max_steps - steps)
    if score < bests.score[taken]:
        return
    if score == bests.score[taken] and (
        bests.arrives[taken] > arrives
        or (bests.arrives[taken] == arrives and bests.steps[taken] <= steps)
    ):
        return
    bests.score[taken] = score
    bests.entry[taken] = entry
    bests.steps[taken] = steps
    bests.arrives[taken] = arrives


@kernel
def fill_bests(legs: Legs, rules: Rules, routes: Routes, to_end: int, bests: Bests) -> None:
    """Write the best walk of each set; `to_end` steps lead from the start to the end, or -1."""
    count = legs.points.size
    for taken in range(bests.score.size):
        bests.score[taken] = -np.inf
        bests.arrives[taken] = False
    keep_better(bests, rules, 0, NO_ENTRY, Walk(0, 0.0, to_end))
    for state in range(count << count):
        for entry in range(routes.first[state], routes.first[state + 1]):
            onward = legs.to_end[state % count]
            walk = Walk(routes.steps[entry], routes.points[entry], onward)
            keep_better(bests, rules, state // count, entry, walk)


@kernel
def fill_best_of_subsets(scores: Floats) -> None:
    """Replace each set's score in `scores` [2**K] by the best of all its subsets."""
    treasure = 1
    while treasure < scores.size:
        for taken in range(scores.size):
            if taken & treasure:
                scores[taken] = max(scores[taken], scores[taken ^ treasure])
        treasure <<= 1


@kernel
def append_way(walls: Bools, distances: Int32s, cell: int, actions: npt.NDArray[np.int8]) -> None:
    """Write the actions of the shortest way from `cell` to where `distances` [W, H] is 0.

    `actions` has its length, at least 1; from a place to itself that is a step away and back.
    """
    x, z = cell // walls.shape[1], cell % walls.shape[1]
    for number in range(actions.size):
        wanted = abs(distances[x, z] - 1)
        for action in range(4):
            next_x, next_z = x + DX[action], z + DZ[action]
            if not is_wall(walls, next_x, next_z) and distances[next_x, next_z] == wanted:
                actions[number] = action
                x, z = next_x, next_z
                break

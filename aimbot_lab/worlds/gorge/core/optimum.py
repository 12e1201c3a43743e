"""The best walks past some treasures: dynamic programming over (treasures taken, the last one).

After Held and Karp, "A dynamic programming approach to sequencing problems" (1962). A state keeps
every pair of steps and points that no other one beats in both: with decaying points the shortest
way is not always the best, as later treasures are worth less.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.kernels.jit import inlined, kernel
from aimbot_lab.worlds.gorge.core.distances import DX, DZ, NO_WAY, Bools, Int32s, is_wall

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

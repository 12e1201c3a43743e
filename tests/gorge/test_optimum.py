"""The optimum: no walk beats it, and the walk that it gives earns it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from gorge_match import WEIGHTS, ground_of
from gorge_oracle import MOVES, Cell, Game, Ground, best_score
from gorge_oracle import Rules as OracleRules

from aimbot_lab.worlds.gorge.core.optimum import Rules
from aimbot_lab.worlds.gorge.generated_maps import generated_maps
from aimbot_lab.worlds.gorge.maps import SIZE, GorgeMap, load_map
from aimbot_lab.worlds.gorge.optimum import optima_by_set, optimum


class Score(NamedTuple):
    """What a walk is worth."""

    max_steps: int
    end_score: float
    step_score: float
    decay: bool

    def treasure(self, points: float, step: int) -> float:
        return points * (1 - step / self.max_steps) if self.decay else points

    def arrival(self, step: int) -> float:
        return self.end_score + self.step_score * (self.max_steps - step)


GORGE = load_map("gorge")
SEEDS_GAME = Score(max_steps=2000, end_score=150.0, step_score=0.2, decay=False)
LIMITS = (20, 60, 100, 160, 300, 500, 2000)


class Case(NamedTuple):
    grid: GorgeMap
    treasures: list[int]
    score: Score


def drawn_cases() -> Iterator[Case]:
    """30 generated maps with up to 6 treasures, tight and wide limits, with decay and without."""
    rng = np.random.default_rng(5)
    for number in range(30):
        (grid,) = generated_maps(1, seed=number, obstacle_share=0.3 + 0.3 * rng.random(), sites=10)
        grid = replace(grid, points=rng.choice([0, 0, 1, 50, 100, 1000], 10).astype(float))
        score = Score(
            max_steps=int(rng.choice(LIMITS)),
            end_score=float(rng.choice([0, 150, 1000])),
            step_score=float(rng.choice([0, 0.2, 3])),
            decay=bool(rng.integers(2)),
        )
        order, count = rng.permutation(10).tolist(), 6 - rng.integers(7) * rng.integers(2)
        yield Case(grid, order[:count], score)


CASES = list(drawn_cases())


def rules_of(score: Score) -> Rules:
    return Rules(score.max_steps, score.end_score, score.step_score, float(score.decay))


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_no_order_of_treasures_beats_the_optimum_and_its_walk_earns_it(case: Case) -> None:
    grid, treasures, score = case
    found = optimum(grid, start=grid.start, treasures=treasures, rules=rules_of(score))
    best = best_score(ground_of(grid), tuple(score), grid.start, frozenset(treasures))
    assert found.score == pytest.approx(best, rel=0, abs=1e-9)
    game, order = game_of(ground_of(grid), frozenset(treasures), score), list[int]()
    for action in found.actions.tolist():
        left = set(game.left)
        game.step(action)
        order += left - game.left
    assert game.score == pytest.approx(found.score, rel=0, abs=1e-9)
    assert (tuple(order), game.steps) == (found.order, found.steps)
    assert found.actions.shape == (found.steps,)
    assert game.over


def game_of(ground: Ground, placed: frozenset[int], score: Score) -> Game:
    """The oracle's game of these treasures."""
    steps, end, step, decay = score
    rules = OracleRules(
        **{"target": "score", "difficulty": 0, "view": 1, "features": (), "pool": ()},
        **{"random_start": False, "win_share": 0.0, "treasure_num": len(placed)},
        **{"max_steps": steps, "end": end, "step": step, "decay": decay},
        weights=dict.fromkeys(WEIGHTS, 0.0),
    )
    return Game(ground, rules, ground.start, placed, optimum=0.0)


def room(rows: str) -> GorgeMap:
    """A map whose obstacles fill everything but a small room, drawn with the first line on top."""
    signs = np.array([list(line) for line in rows.split()])[::-1].T
    walls = np.ones((SIZE, SIZE), np.bool_)
    walls[: signs.shape[0], : signs.shape[1]] = signs == "#"

    def place(sign: str) -> tuple[int, int]:
        x, z = np.argwhere(signs == sign)[0].tolist()
        return x, z

    count = int(np.isin(signs, list("0123456789")).sum())
    sites = np.array([place(str(k)) for k in range(count)], np.int64)
    points = np.array([50.0, 100.0, 30.0, 70.0][:count])
    return GorgeMap("room", walls, place("S"), place("E"), sites, points)


ROOMS = (
    "2..#..E..0 .#.##.#.#. .#..S.#... .####.#.#. 1.........",
    "0E1 .S.",
    "0.E.1 .###. S....",
    "S0E",
)


def best_of_every_walk(ground: Ground, score: Score) -> float:
    """Over (cell, treasures left, step), step by step: no legs, no orders."""
    places = {site: k for k, site in enumerate(ground.sites)}
    now = {(ground.start, frozenset(places.values())): 0.0}
    best = 0.0
    for step in range(1, score.max_steps + 1):
        after: dict[Any, float] = {}
        for (cell, left), total in now.items():
            for there in [*neighbours(ground, cell), cell]:
                taken = places.get(there) if there != cell else None
                gained = score.treasure(ground.points[taken], step) if taken in left else 0.0
                if there == ground.end:
                    best = max(best, total + gained + score.arrival(step))
                    continue
                state = (there, left - {taken})
                after[state] = max(after.get(state, 0.0), total + gained)
        now = after
        best = max([best, *now.values()])
    return best


def neighbours(ground: Ground, cell: Cell) -> list[Cell]:
    return [to for dx, dz in MOVES if (to := (cell[0] + dx, cell[1] + dz)) in ground.road]


@pytest.mark.parametrize("decay", [False, True])
@pytest.mark.parametrize("rows", ROOMS)
def test_no_walk_at_all_beats_the_optimum_in_small_rooms(rows: str, decay: bool) -> None:
    grid, ground = room(rows), ground_of(room(rows))
    every = range(len(grid.sites))
    for max_steps in range(1, 31):
        for step_score, end_score in ((0.0, 0.0), (2.0, 50.0), (30.0, 5.0)):
            score = Score(max_steps, end_score, step_score, decay)
            found = optimum(grid, start=grid.start, treasures=every, rules=rules_of(score))
            exact = best_of_every_walk(ground, score)
            assert found.score == pytest.approx(exact, rel=0, abs=1e-9)


@pytest.mark.parametrize("decay", [False, True])
@pytest.mark.parametrize("max_steps", [90, 200, 2000])
def test_optima_by_set_are_the_optima_of_the_sets(max_steps: int, decay: bool) -> None:
    score = SEEDS_GAME._replace(max_steps=max_steps, decay=decay)
    scores = optima_by_set(GORGE, start=GORGE.start, rules=rules_of(score))
    assert scores.shape == (1024,)
    for number in [0, 1023, *np.random.default_rng(2).integers(1024, size=60).tolist()]:
        treasures = [k for k in range(10) if number >> k & 1]
        best = optimum(GORGE, start=GORGE.start, treasures=treasures, rules=rules_of(score))
        assert scores[number] == best.score

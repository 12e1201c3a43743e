"""Gorge Walk once more, slowly: written from its specification alone, in plain Python.

Cells are pairs (x, z). A game is told what was drawn for it (map, start, treasures, numbers), and
says what every step must show and earn.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import permutations

Cell = tuple[int, int]
SIDE = 64
MOVES: tuple[Cell, ...] = ((0, 1), (0, -1), (-1, 0), (1, 0))  # up, down, left, right
PLACED_SHARE = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.5, 5: 1.0}  # of the pool, by difficulty of collect


def absolute(cell: Cell) -> list[int]:
    """The cell on the map before it became a grid; (29, 9) is at (29500, -54500)."""
    x, z = cell
    return [round((x + 0.5) * 1000), round((z - 63.5) * 1000)]


@dataclass(frozen=True)
class Ground:
    road: frozenset[Cell]
    start: Cell
    end: Cell
    sites: tuple[Cell, ...]
    points: tuple[float, ...]


@dataclass(frozen=True)
class Rules:
    target: str
    difficulty: int
    max_steps: int
    view: int
    features: tuple[str, ...]
    end: float
    step: float
    decay: bool
    random_start: bool
    win_share: float
    treasure_num: int
    pool: tuple[int, ...]
    weights: Mapping[str, float]


@lru_cache(512)
def steps_to(ground: Ground, goal: Cell, *, closed: Cell | None = None) -> dict[Cell, int]:
    """Steps from each cell to `goal`, over road but `closed`."""
    found = {goal: 0}
    waiting = deque([goal])
    while waiting:
        x, z = waiting.popleft()
        for dx, dz in MOVES:
            cell = x + dx, z + dz
            if cell in ground.road and cell != closed and cell not in found:
                found[cell] = found[x, z] + 1
                waiting.append(cell)
    return found


def placed_count(rules: Rules) -> int:
    if rules.target == "walk":
        return 0
    if rules.target == "score":
        return rules.treasure_num
    return math.ceil(round(PLACED_SHARE[rules.difficulty] * len(rules.pool), 9))


def may_begin_at(ground: Ground, rules: Rules, cell: Cell) -> bool:
    if rules.target == "walk" and rules.difficulty < 5:
        ways = steps_to(ground, ground.end)
        quarter = ways[ground.start] / 4
        low, high = (rules.difficulty - 1) * quarter, rules.difficulty * quarter
        return cell in ways and low < ways[cell] <= high
    if rules.target != "walk" and rules.random_start:
        from_start = steps_to(ground, ground.start, closed=ground.end)
        return cell in from_start and cell not in {ground.sites[k] for k in rules.pool}
    return cell == ground.start


@lru_cache(512)
def best_score(ground: Ground, rules: tuple, start: Cell, placed: frozenset[int]) -> float:
    """The best total: every order of every choice of treasures, with and without the end."""
    max_steps, end, step, decay = rules
    ways = {site: steps_to(ground, ground.sites[site], closed=ground.end) for site in placed}
    to_end = steps_to(ground, ground.end)
    best = 0.0
    for count in range(len(placed) + 1):
        for order in permutations(sorted(placed), count):
            steps, total, cell = 0, 0.0, start
            for site in order:
                steps += ways[site][cell]
                cell = ground.sites[site]
                share = 1 - steps / max_steps if decay else 1
                total += ground.points[site] * share if steps <= max_steps else -math.inf
            best = max(best, total)
            arrival = steps + to_end[cell]
            if arrival <= max_steps:
                best = max(best, total + end + step * (max_steps - arrival))
    return best


@dataclass
class Game:
    ground: Ground
    rules: Rules
    hero: Cell
    placed: frozenset[int]
    optimum: float
    steps: int = 0
    bumps: int = 0
    score: float = 0.0
    treasure_score: float = 0.0
    last_score: float = 0.0
    over: bool = False
    arrived: bool = False
    arrivals: dict[Cell, int] = field(default_factory=dict)
    terms: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = set(self.placed)
        self.arrivals = {self.hero: 1}
        self.terms = dict.fromkeys(self.rules.weights, 0.0)

    def step(self, action: int) -> float:
        ground, rules = self.ground, self.rules
        before, there = self.hero, set(self.left)
        cell = before[0] + MOVES[action][0], before[1] + MOVES[action][1]
        bumped = cell not in ground.road
        memory = min(1.0, self.arrivals.get(cell, 0) / 10)
        self.steps += 1
        points = end_points = step_points = 0.0
        if bumped:
            self.bumps += 1
        else:
            self.hero = cell
            self.arrivals[cell] = self.arrivals.get(cell, 0) + 1
            for site in there:
                if ground.sites[site] == cell:
                    self.left.remove(site)
                    share = 1 - self.steps / rules.max_steps if rules.decay else 1.0
                    points = ground.points[site] * share
            self.arrived = cell == ground.end
            if self.arrived:
                end_points = rules.end
                step_points = rules.step * (rules.max_steps - self.steps)
        self.last_score = points + end_points + step_points
        self.score += self.last_score
        self.treasure_score += points
        self.over = self.arrived or self.steps == rules.max_steps
        amounts = {
            "treasure": points,
            "finish": end_points,
            "step_score": step_points,
            "step_penalty": 1.0,
            "bump": float(bumped),
            "revisit": 0.0 if bumped else memory,
            "distance": float(self._way_to_end(before) - self._way_to_end(self.hero)),
            "treasure_distance": self._nearer_treasure(before, there),
            "win": float(self.over and self.won),
            "lose": float(self.over and not self.won),
        }
        earned = {term: rules.weights[term] * amount for term, amount in amounts.items()}
        for term, value in earned.items():
            self.terms[term] += value
        return math.fsum(earned.values())

    def _way_to_end(self, cell: Cell) -> int:
        return steps_to(self.ground, self.ground.end)[cell]

    def _nearer_treasure(self, before: Cell, there: set[int]) -> float:
        if not there or self.arrived:
            return 0.0
        ways = [steps_to(self.ground, self.ground.sites[k], closed=self.ground.end) for k in there]
        return float(min(way[before] for way in ways) - min(way[self.hero] for way in ways))

    @property
    def won(self) -> bool:
        """Whether the game, which is over, is won."""
        if self.rules.target == "collect":
            return self.arrived and not self.left
        if self.rules.target == "score":
            return self.arrived and self.score >= self.rules.win_share * self.optimum - 1e-9
        return self.arrived

    def masks(self) -> list[bool]:
        x, z = self.hero
        return [(x + dx, z + dz) in self.ground.road for dx, dz in MOVES]

    def observation(self) -> list[float]:
        return [value for name in self.rules.features for value in self._block(name)]

    def _window(self) -> list[Cell]:
        (x, z), v = self.hero, self.rules.view
        return [(x + dx, z + dz) for dx in range(-v, v + 1) for dz in range(-v, v + 1)]

    def _block(self, name: str) -> Sequence[float]:
        x, z = self.hero
        memory = self.arrivals
        treasures = {self.ground.sites[site] for site in self.left}
        blocks = {
            "position": lambda: [x, z],
            "pos_norm": lambda: [x / 64, z / 64],
            "pos_polar": lambda: [
                math.sqrt(x**2 + z**2) / (64 * math.sqrt(2)),
                math.atan2(z, x) / (math.pi / 2),
            ],
            "treasure": lambda: [site in self.left for site in range(10)],
            "list_treasure": lambda: [site in self.left for site in range(10)],
            "obstacle_map": lambda: [cell not in self.ground.road for cell in self._window()],
            "treasure_map": lambda: [cell in treasures for cell in self._window()],
            "end_map": lambda: [cell == self.ground.end for cell in self._window()],
            "walked_map": lambda: [memory.get(cell, 0) > 0 for cell in self._window()],
            "location_memory": lambda: [
                min(1.0, memory.get((cx, cz), 0) / 10) for cx in range(SIDE) for cz in range(SIDE)
            ],
            "pos_row": lambda: [k == x for k in range(SIDE)],
            "pos_col": lambda: [k == z for k in range(SIDE)],
            "steps_left": lambda: [self.rules.max_steps - self.steps],
        }
        return [float(value) for value in blocks[name]()]

    def frame(self) -> dict:
        return {
            "step_no": self.steps,
            "heroes": [
                {
                    "hero_id": 112,
                    "treasure_count": len(self.placed) - len(self.left),
                    "pos": list(self.hero),
                    "absolute_pos": absolute(self.hero),
                }
            ],
            "organs": [
                {
                    "sub_type": 1,
                    "config_id": site,
                    "pos": list(self.ground.sites[site]),
                    "absolute_pos": absolute(self.ground.sites[site]),
                    "status": int(site not in self.left),
                    "reward": self.ground.points[site],
                }
                for site in sorted(self.placed)
            ],
            "score": self.last_score,
            "total_score": self.score,
        }

    def columns(self) -> dict[str, float]:
        """What the game counts of an episode that is over."""
        return {
            "steps": self.steps,
            "bumps": self.bumps,
            "treasures": len(self.placed) - len(self.left),
            "placed": len(self.placed),
            "score": self.score,
            "treasure_score": self.treasure_score,
            "optimum": self.optimum,
            "arrived": self.arrived,
        }

"""Players for the oracle's tests: between them they meet every rule of the arena."""

import math
import random

KINDS = ("jitterer", "drifter", "spinner", "wall walker", "hunter", "seeker", "hunter", "seeker")


class Player:
    """One row's player; `act` gives its next action."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self._random = random.Random(seed)
        self._keys = (0, 0)
        self._mouse = 0.0
        self._held = 0  # decisions for which keys and mouse stay as they are

    def act(self, rules, episode) -> tuple[int, int, int, float]:
        """Vertical move, horizontal move, attack, mouse."""
        goal = self._goal(episode)
        if goal is not None:
            return self._towards(goal, rules, episode)
        if self._held == 0:
            self._choose(rules["mouse_limit"])
        self._held -= 1
        return *self._keys, self._random.randrange(2), self._mouse

    def _choose(self, limit: float) -> None:
        roll = self._random
        self._keys = roll.randrange(3), roll.randrange(3)
        if self.kind == "jitterer":
            self._held, self._mouse = 1, roll.gauss(0.0, 1.5 * limit)
        elif self.kind == "spinner":
            self._held = roll.randint(10, 70)
            self._mouse = roll.choice([-1.0, -0.9, 0.0, 0.7, 1.0, 3.0]) * limit
        elif self.kind == "wall walker":
            turn = roll.random() < 0.3
            self._keys = roll.choice([1, 1, 1, 2]), roll.choice([0, 0, 1, 2])
            self._held, self._mouse = (4, roll.uniform(-1, 1) * limit) if turn else (30, 0.0)
        else:
            self._held, self._mouse = roll.randint(1, 20), roll.gauss(0.0, 0.2 * limit)

    def _goal(self, episode):
        here = (episode.x, episode.z)
        alive = [
            place
            for place, hits in zip(episode.enemies, episode.hits_left, strict=True)
            if hits > 0
        ]
        if self.kind == "hunter" and alive:
            return min(alive, key=lambda place: math.dist(here, place))
        if self.kind == "seeker" and episode.fire_base is not None:
            return episode.fire_base[:2]
        return None

    def _towards(self, goal, rules, episode) -> tuple[int, int, int, float]:
        roll = self._random
        bearing = math.atan2(goal[0] - episode.x, goal[1] - episode.z) - episode.yaw
        turn = math.remainder(bearing, 2 * math.pi) / rules["mouse_factor"]
        if self._held == 0:
            stray = roll.random() < 0.4
            self._held = roll.randint(5, 20)
            self._keys = (roll.randrange(3), roll.randrange(3)) if stray else (1, 0)
        self._held -= 1
        return *self._keys, int(roll.random() < 0.8), turn + roll.gauss(0.0, 0.2)

"""Duels in play, and what the laws compare."""

from collections.abc import Iterator, Mapping

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, Scenario, StepBuffers, step_buffers
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.players import make_players
from aimbot_lab.worlds.duel.settings import DuelSettings


def scenario(level: int = 0, **parameters: float) -> Scenario:
    """Matches on one difficulty, or on all."""
    weights = {"duel": tuple(float(level == k) for k in range(1, 6))} if level else {}
    given = {name.replace("__", "."): value for name, value in parameters.items()}
    return Scenario({"duel": 1.0}, difficulty=weights, parameters=given)


def reset(world: BatchWorld, drawn: Scenario, seed: int = 3) -> StepBuffers:
    """Buffers with the first observations of `world`."""
    world.set_scenario(drawn)
    buffers = step_buffers(world)
    world.reset(seed, buffers.observations)
    return buffers


def begun(settings: DuelSettings, drawn: Scenario) -> tuple[Duel, StepBuffers]:
    duel = Duel(settings)
    return duel, reset(duel, drawn, 1)


class Crowd:
    """Players for all seats that meet and hit each other: a third each random, hunting, charging.

    Who plays how depends on the match, and what it draws on match, agent and step alone.
    """

    def __init__(self, duel: Duel, seed: int = 0) -> None:
        self._hunt = make_players(duel.settings)["aimbot"](duel, seed)
        self._duel, self._seed, self._step = duel, seed, 0

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        matches = self._duel.num_envs
        self._step += 1
        drawn = np.stack([self._drawn(match) for match in range(matches)], axis=1)
        actions = drawn.reshape(2 * matches, 4).astype(np.float32)
        hunting = self._hunt(observations, np.zeros(2 * matches, np.bool_))
        kind = np.tile(np.arange(matches) % 3, 2)
        actions[kind == 1] = hunting[kind == 1]
        charging = hunting.copy()
        charging[:, 0], charging[:, 1:3] = 1, 0
        actions[kind == 2] = charging[kind == 2]
        return actions

    def _drawn(self, match: int) -> np.ndarray:
        random = np.random.default_rng((self._seed, self._step, match))
        branches = random.integers(0, (3, 3, 2), (2, 3))
        return np.concatenate([branches, random.uniform(-6, 6, (2, 1))], axis=1)


def swapped_seats(array: np.ndarray) -> np.ndarray:
    """[2 B, ...] with home's and away's halves exchanged."""
    return np.roll(array, len(array) // 2, axis=0)


def swapped(snapshot: Mapping[str, np.ndarray], matches: int) -> dict[str, np.ndarray]:
    """A snapshot in which home and away have exchanged everything that is a seat's."""
    return {
        name: swapped_seats(array)
        if len(array) == 2 * matches and not name.startswith(("fits", "scenario_tables."))
        else array
        for name, array in snapshot.items()
    }


def played(duel: Duel, buffers: StepBuffers, steps: int) -> Iterator[dict[str, np.ndarray]]:
    """What each step of a crowd gives, copied."""
    act = Crowd(duel)
    for _ in range(steps):
        batch = duel.step(act(buffers.observations), buffers)
        copies = {name: array.copy() for name, array in buffers._asdict().items()}
        yield {**copies, "outcome": batch.outcome, "terms": batch.terms}

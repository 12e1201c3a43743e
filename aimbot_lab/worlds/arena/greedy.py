"""The greedy player: a scripted baseline for every target of the arena.

A function from raw observations [B, D] to world actions [B, 4] that knows nothing of the arena but
its spec: vertical move, horizontal move, attack, mouse.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array, Observations, WorldSpec, columns_of

STOP, FORWARD = 0, 1  # indices of the vertical branch
VERTICAL, ATTACK, MOUSE = 0, 2, 3  # columns of an action
NO_GOTO = -1  # where there is no such target
SEARCH_TURN = 0.2  # rad a decision, where there is nothing to turn to
TURN_PER_UNIT = 0.08  # rad a unit of the mouse action, as in Aimbot-ParallelEnv


class Tag(NamedTuple):
    """How rays tag whom they hit."""

    label: float
    one_hot: str  # name of the column


ENEMY, PLAYER = Tag(1.0, "enemy"), Tag(2.0, "player")


class GreedyAgent:
    """Turns to its target, walks and shoots; without memory, plan or way round an obstacle.

    It turns to the seen enemy that takes the least turn, else to the FireBase centre, else it
    walks in a circle to search. It stands and shoots when the gun's line meets an enemy, and
    walks ahead otherwise. In Goto, where there is one, it ignores enemies.

    `ray_angles` [R] are the rays' angles to the gun's line in rad, left to right. Without them
    the turn grows evenly with the ray's rank, up to the mouse limit for the outermost one: that
    comes nearer with every decision in all but very narrow views, but takes longer.
    `turn_per_unit` is in rad per unit of the mouse action. `enemy` is how rays tag those it hunts.
    """

    def __init__(
        self,
        spec: WorldSpec,
        *,
        ray_angles: Sequence[float] | None = None,
        turn_per_unit: float = TURN_PER_UNIT,
        enemy: Tag = ENEMY,
    ) -> None:
        self._column = {name: index for index, name in enumerate(spec.observation_names)}
        ends = "_distance", "_fraction"
        rays = sum(name.startswith("ray_") and name.endswith(ends) for name in self._column)
        tag = enemy.one_hot if f"ray_0_{enemy.one_hot}" in self._column else "tag"
        self._enemy_tag = enemy.label if tag == "tag" else 1.0
        self._enemy_tags = [self._column[f"ray_{ray}_{tag}"] for ray in range(rays)]
        self._goto = spec.targets.get("goto", NO_GOTO)
        self._limit = spec.continuous_limit
        self._turn_per_unit = turn_per_unit
        middle = rays // 2
        self._mouse_of_ray = (
            self._limit * (np.arange(rays) - middle) / max(middle, 1)
            if ray_angles is None
            else np.array(ray_angles) / turn_per_unit
        ).astype(np.float32)

    def __call__(
        self, observations: Observations, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [B, 4] for raw `observations` [B, D]."""
        observations = columns_of(observations)
        seen, ahead, towards = self._look(observations)
        goto = observations[:, self._column["target"]] == self._goto
        hunting, aimed = seen & ~goto, ahead & ~goto
        ready = observations[:, self._column["gun_ready"]] > 0
        mouse = np.where(hunting, towards, self._mouse_without_enemy(observations))
        actions = np.zeros((len(observations), 4), np.float32)
        actions[:, VERTICAL] = np.where(aimed, STOP, FORWARD)
        actions[:, ATTACK] = aimed & ready
        actions[:, MOUSE] = mouse.clip(-self._limit, self._limit)
        return actions

    def _look(self, observations: Float32Array) -> tuple[BoolArray, BoolArray, Float32Array]:
        """[B] whether a ray hits an enemy, and whether the gun's line does, the middle ray.

        And the mouse action towards the enemy that takes the least turn.
        """
        enemies = observations[:, self._enemy_tags] == self._enemy_tag
        turns = np.where(enemies, np.abs(self._mouse_of_ray), np.inf)
        towards = self._mouse_of_ray[turns.argmin(axis=1)]
        return enemies.any(axis=1), enemies[:, enemies.shape[1] // 2], towards

    def _mouse_without_enemy(self, observations: Float32Array) -> Float32Array:
        """Mouse actions [B] that turn to the FireBase centre, or search where there is none."""
        x, z = (
            observations[:, self._column[f"fire_base_{axis}"]]
            - observations[:, self._column[f"agent_{axis}"]]
            for axis in "xz"
        )
        sine, cosine = (observations[:, self._column[f"{part}_yaw"]] for part in ("sin", "cos"))
        bearing = np.arctan2(x * cosine - z * sine, x * sine + z * cosine)
        has_base = observations[:, self._column["fire_base_diameter"]] > 0
        turn = np.where(has_base, bearing, SEARCH_TURN)
        return (turn / self._turn_per_unit).astype(np.float32)

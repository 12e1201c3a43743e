"""What an actor keeps of a block beside its rollout buffer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.foundation.episodes import EpisodeBatch, oldest
from aimbot_lab.training.actors.block import Array, Ends, Order
from aimbot_lab.training.actors.settled import SettledEpisodes


class Recorder(BaseCallback):
    """Keeps the episodes that end in each step of `env`, and what stands behind its rewards.

    With `settled` episodes are given out by that; without, as they end, with the world's own ranks.
    """

    def __init__(
        self, env: WorldVecEnv, settled: SettledEpisodes | None, *, keeps_ends: bool
    ) -> None:
        super().__init__()
        self._env, self._settled, self._keeps_ends = env, settled, keeps_ends
        self._first: int | None = None
        self._step = 0
        self.running: int | None = None
        """Rank of the oldest episode that ran and counts where the block began."""
        self.ended: list[EpisodeBatch] = []
        self.unread: list[tuple[int, str]] = []
        self._rewards: list[Array] = []
        self._ends: list[Array] = []
        self._cuts: list[tuple[int, int, Array]] = []

    @property
    def unsettled(self) -> int:
        """Episodes that would be lost now."""
        return 0 if self._settled is None else self._settled.unsettled

    def begin(self, order: Order) -> None:
        """The block that `order` asks for begins."""
        self._first, self._step = order.first, 0
        self.ended, self.unread = [], []
        self._rewards, self._ends, self._cuts = [], [], []
        if self._settled is None:
            world: Any = self._env.world  # a worlds.row_parts.PartWorld
            order_by_row, scenario_by_row = world.running()
            self.running = oldest(order_by_row, scenario_by_row, order.first)
        else:
            self._settled.begin(order.version, order.first)
            self.running = self._settled.running

    def _on_step(self) -> bool:
        if self._env.episodes:
            self._keep(self._env.episodes)
        if self._keeps_ends:
            self._rewards.append(self.locals["rewards"].copy())  # which values are added to later
            self._ends.append(self.locals["dones"])
            self._keep_cuts(self.locals["dones"], self.locals["infos"])
        self._step += 1
        return True

    def _keep(self, ended: EpisodeBatch) -> None:
        self.unread += [(self._step, why) for why in ended.unread]
        if self._settled is None:
            kept = ended.beside(ended.oldest_running(self._first), self._first)
        else:
            kept = self._settled.add(ended)
        self.ended.append(kept._replace(step=self._step))

    def _keep_cuts(self, dones: Array, infos: list[dict[str, Any]]) -> None:
        for row in np.flatnonzero(dones).tolist():
            if infos[row].get("TimeLimit.truncated"):
                self._cuts.append((self._step, row, infos[row]["terminal_observation"]))

    def ends(self, last_observations: Array) -> Mapping[str, Array] | None:
        """`Ends` of the block, which `last_observations` [N, D] follow; None where not kept."""
        if not self._keeps_ends:
            return None
        nothing = np.zeros((0, last_observations.shape[1]), np.float32)
        return Ends(
            rewards=np.stack(self._rewards),
            ends=np.stack(self._ends),
            last_observations=last_observations,
            cut_steps=np.array([step for step, _, _ in self._cuts], np.int64),
            cut_rows=np.array([row for _, row, _ in self._cuts], np.int64),
            cut_observations=np.stack([one for _, _, one in self._cuts]) if self._cuts else nothing,
        )._asdict()

"""The best agent that a training has had so far."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.agents.agent_files import save_agent
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.version import full_version

Rank = tuple[int, float]  # lessons passed, then the lower end of the win rate's interval


class BestAgent:
    """Weights of the agent with the highest rank; `weights` is None before there is one.

    Ranked by the interval's lower end, so that a lucky streak over few episodes does not count as
    better.
    """

    def __init__(self) -> None:
        self.weights: dict[str, th.Tensor] | None = None
        self.about: dict[str, Any] = {}
        self._rank: Rank = (-1, 0.0)

    @classmethod
    def of(cls, weights: Mapping[str, th.Tensor], about: Mapping[str, Any]) -> "BestAgent":
        """The agent with `weights`, which was found to be the best in another way."""
        made = cls()
        made.weights, made.about = dict(weights), dict(about)
        return made

    def consider(
        self, rank: Rank, weights: Mapping[str, th.Tensor], *, step: int, lesson: int
    ) -> None:
        """Keep a copy of `weights`, those at environment step `step`, if none ranked as high.

        `lesson` is the one it was in, from 1; of a training that passed all, the last.
        """
        if rank > self._rank:
            self._rank = rank
            self.weights = {name: tensor.clone() for name, tensor in weights.items()}
            self.about = {"step": step, "lesson": lesson, "win_rate_lower": rank[1]}

    def state(self) -> dict[str, Any]:
        """Everything about it."""
        return {"weights": self.weights, "about": self.about, "rank": self._rank}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.weights, self.about = state["weights"], state["about"]
        self._rank = state["rank"]


def saved_agents(
    policy: BasePolicy,
    best: BestAgent,
    folder: Path,
    *,
    env: WorldSettings,
    train: TrainSettings,
    about: dict[str, Any],
) -> dict[str, tuple[Path, ...]]:
    """Files in `folder` of `policy` as the `last` agent and, once there is one, of the `best`.

    Both say of what version the code was.
    """
    made_by = {"aimbot_lab": full_version()}
    saved: dict[str, tuple[Path, ...]] = {
        "last": save_agent(policy, folder / "last", env=env, train=train, about=about | made_by)
    }
    if best.weights is not None:
        last = {name: t.clone() for name, t in policy.state_dict().items()}
        policy.load_state_dict(best.weights)
        about = best.about | made_by
        saved["best"] = save_agent(policy, folder / "best", env=env, train=train, about=about)
        policy.load_state_dict(last)
    return saved

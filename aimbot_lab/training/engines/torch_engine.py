"""stable-baselines3's own loop, and updates by torch's autograd."""

from collections.abc import Callable
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.algorithms.ppo_update import update
from aimbot_lab.training.engines.engine import Loop


class TorchEngine:
    """Knows every policy, and equals stable-baselines3 to the bit."""

    name = "torch"
    by_shards = False
    before_step: Callable[[], None] | None = None

    def __init__(self, policy: ActorCriticPolicy) -> None:
        del policy  # the model has it

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill the buffer by stable-baselines3's loop, whose policy acts by torch."""
        del model, steps
        return loop()

    def shown(self) -> Any:
        """Nothing: the rollout buffer has it all."""

    def show(self, shown: Any) -> None:
        """Nothing to keep."""

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by gradients that torch works out."""
        update(model, dual_clip=dual_clip)

"""What an engine does: it collects rollouts, and learns from them; torch's does it by autograd."""

from collections.abc import Callable
from typing import Any, Protocol

from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.algorithms.ppo_update import update

Loop = Callable[[], bool]
"""stable-baselines3's own loop over a rollout's steps; False where a callback ended it."""


class UnsuitedError(ValueError):
    """The engine does not know this policy; says why."""


class Engine(Protocol):
    """Computes for one policy; what is learned stays in the policy and its optimiser.

    Making one of a policy that it does not know raises UnsuitedError.
    """

    name: str
    by_shards: bool
    """Whether what it learns is cut into shards."""
    before_step: Callable[[], None] | None
    """Called before each gradient step that no optimiser of torch takes."""

    def collect(self, model: PPO, loop: Loop, *, steps: int) -> bool:
        """Fill `model.rollout_buffer` with so many steps of every row; what `loop` gives.

        The loop asks the policy for actions and steps the world, and calls the callbacks.
        """
        ...

    def shown(self) -> Any:
        """What the last rollout's networks were shown [T, N, F], to be given to another's `show`.

        None where the engine keeps nothing of the kind.
        """
        ...

    def show(self, shown: Any) -> None:
        """Learn next from a rollout that another engine collected, which gave this as `shown`."""
        ...

    def update(self, model: PPO, *, dual_clip: float | None) -> None:
        """Improve the policy by `model.rollout_buffer`, and record what PPO records."""
        ...


class TorchEngine:
    """stable-baselines3's loop and updates by autograd: knows every policy, equal to the bit."""

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

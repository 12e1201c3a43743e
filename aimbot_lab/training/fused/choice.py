"""Which of the fused engines computes for a policy."""

from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.fused.memory.engine import RememberingEngine


def fused_engine(policy: ActorCriticPolicy) -> FusedEngine:
    """The engine for `policy`. Raises UnsuitedError where it is of no known kind."""
    remembers = getattr(policy, "memory_shape", None) is not None
    return (RememberingEngine if remembers else FusedEngine)(policy)

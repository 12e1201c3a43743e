"""Which of the fused engines computes for a policy."""

from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.fused.parts.engine import PartsEngine
from aimbot_lab.training.fused.parts.policy import has_parts


def fused_engine(policy: ActorCriticPolicy) -> FusedEngine:
    """The engine for `policy`. Raises UnsuitedError where it is of no known kind."""
    return (PartsEngine if has_parts(policy) else FusedEngine)(policy)

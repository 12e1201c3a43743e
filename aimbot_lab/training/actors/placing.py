"""Which actor of a training has which rows, and how long each may take."""

from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.training.actors.patience import Patience
from aimbot_lab.training.algorithms.registry import HYBRID_PPO
from aimbot_lab.training.checks import actor_faults
from aimbot_lab.training.plan import TrainingPlan
from aimbot_lab.version import code_hash
from aimbot_lab.worlds.registry import spec_of, type_of


def check_actors(plan: TrainingPlan) -> None:
    """Raise ConfigurationError where no actors can play for `plan`."""
    if plan.train.algo != HYBRID_PPO.name:
        raise ConfigurationError(f"train.actors: does nothing with {plan.train.algo}: leave it out")
    if plan.self_play is not None:
        raise ConfigurationError("train.actors: must be left out under self_play")
    faults = actor_faults(plan.env, plan.train)
    lines = [f"{'.'.join(('train', *key))}: {what}" for key, what in faults]
    if lines:
        raise ConfigurationError("\n".join(lines))


def actor_plans(plan: TrainingPlan) -> list[ActorPlan]:
    """Those of all actors: in step, some rows of one world where that can be, else own worlds."""
    actors, rows = plan.train.actors, type_of(plan.env).rows(plan.env)
    assert actors is not None
    placed = actors.lag == 0 and spec_of(plan.env).can("parts")
    return [
        ActorPlan(
            env=plan.env,
            train=plan.train,
            seed=plan.seed,
            number=number,
            actors=actors.number,
            rows=rows // actors.number,
            placed=placed,
            code=code_hash(),
        )
        for number in range(actors.number)
    ]


def patience_with(env: Any) -> Patience:
    """For actors of worlds by the settings `env`, of which some name a `timeout_wait` in s.

    Such a world itself starts its program again that says nothing for so long.
    """
    return Patience(program_seconds=getattr(env, "timeout_wait", 0.0))

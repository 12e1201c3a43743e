"""Which engines exist, and which of them computes for a policy."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stable_baselines3.common.policies import ActorCriticPolicy

from aimbot_lab.training.engines.engine import Engine, TorchEngine, UnsuitedError
from aimbot_lab.training.fused.engine import FusedEngine

AUTO = "auto"


class EngineType(NamedTuple):
    """An engine by the name that `train.engine` gives it."""

    name: str
    make: Callable[[ActorCriticPolicy], Engine]  # raises UnsuitedError
    any_threads: bool  # whether the number of threads makes no difference to what is learned
    draws_from_kept: bool = False  # whether it learns from rollouts of older policies, too


class Choice(NamedTuple):
    """The engine that computes, and faster ones that do not suit: each with the reason."""

    engine: Engine
    passed_over: tuple[tuple[str, str], ...]


ENGINES = (
    EngineType("fused", FusedEngine, any_threads=True),
    EngineType("torch", TorchEngine, any_threads=False, draws_from_kept=True),
)
"""The faster ones first; the last one suits every policy."""


def engine_types(asked: str) -> tuple[EngineType, ...]:
    """The engines to try, in this order, where `asked` is one's name or `auto`."""
    return tuple(one for one in ENGINES if asked in (AUTO, one.name))


def suited_engine(
    policy: ActorCriticPolicy, types: Sequence[EngineType], *, keeps_rollouts: bool = False
) -> Choice:
    """The first of `types` that suits `policy`. Raises ValueError where none does."""
    passed_over: list[tuple[str, str]] = []
    for one in types:
        if keeps_rollouts and not one.draws_from_kept:
            passed_over.append((one.name, "it does not know train.samples.keep"))
            continue
        try:
            return Choice(one.make(policy), tuple(passed_over))
        except UnsuitedError as error:
            passed_over.append((one.name, str(error)))
    raise ValueError("; ".join(f"engine {name}: {why}" for name, why in passed_over))

"""Actions drawn at another temperature than in training, and how likely each is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.distributions import MaskableMultiCategoricalDistribution
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED, Temperature

Float64Array = npt.NDArray[np.float64]


class Probabilities(NamedTuple):
    """How a policy's actions are distributed for B observations."""

    choices: tuple[Float64Array, ...]  # of each branch [B, its choices]
    means: Float64Array | None  # [B, C] of continuous columns; None: they have bins, last branches
    deviation: Float64Array  # [C] of these


@contextmanager
def at_temperature(policy: BasePolicy, temperature: Temperature) -> Iterator[None]:
    """While it lasts, `policy` samples at `temperature`, which is not 0.

    Logits are divided by it and standard deviations multiplied. At 1 nothing is touched: actions
    are those of the training to the bit.
    """
    if temperature in (LIKELIEST, SAMPLED):
        yield
        return
    distribution: Any = policy.action_dist
    made = distribution.proba_distribution

    def tempered(*parameters: th.Tensor, **named: th.Tensor) -> Any:
        if isinstance(distribution, DiagGaussianDistribution):
            return made(*_hybrid(distribution, *parameters, temperature=temperature))
        return made(*_divided(parameters, named, temperature))

    distribution.proba_distribution = tempered  # of this object alone, and only for now
    try:
        yield
    finally:
        del distribution.proba_distribution


def _divided(
    parameters: tuple[th.Tensor, ...], named: Mapping[str, th.Tensor], temperature: float
) -> tuple[th.Tensor, ...]:
    """Logits over the temperature, however stable-baselines3 hands them over."""
    return tuple(logits / temperature for logits in (*parameters, *named.values()))


def _hybrid(
    distribution: DiagGaussianDistribution,
    outputs: th.Tensor,
    log_std: th.Tensor,
    *,
    temperature: float,
) -> tuple[th.Tensor, th.Tensor]:
    """Logits and means [N, L + C] and log standard deviations [C] at `temperature`."""
    count = sum(getattr(distribution, "choices", ()))  # none where an action is numbers alone
    cooled = th.cat([outputs[:, :count] / temperature, outputs[:, count:]], dim=1)
    return cooled, log_std + float(th.tensor(temperature).log())


def probabilities_of(distribution: Any) -> Probabilities:
    """The probabilities that stable-baselines3's `distribution` holds."""
    if isinstance(distribution, DiagGaussianDistribution):
        numbers: Any = distribution.distribution
        means, deviation = (one.double().numpy() for one in (numbers.mean, numbers.stddev[0]))
        return Probabilities(_choices(getattr(distribution, "branches", ())), means, deviation)
    masked = isinstance(distribution, MaskableMultiCategoricalDistribution)
    branches = distribution.distributions if masked else distribution.distribution
    return Probabilities(_choices(branches), None, np.zeros(0))


def _choices(branches: Any) -> tuple[Float64Array, ...]:
    return tuple(branch.logits.double().softmax(dim=1).cpu().numpy() for branch in branches)

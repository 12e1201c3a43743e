"""The mixture of players that no player beats, and of all such the most even one.

Of a symmetric zero-sum game, whose value is 0: maximum-entropy Nash equilibrium (Balduzzi et al.
2018, "Re-evaluating evaluation", arXiv:1806.02643).
"""

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, minimize

Floats = npt.NDArray[np.float64]
SLACK = 1e-9  # by which the mixture may fall short of the value


def nash_weights(scores: npt.ArrayLike) -> Floats:
    """Weights [P], which sum to 1, of players with the mean `scores` [P, P] against each other.

    A score lies between 0 and 1, and those of i against j and of j against i sum to 1.
    """
    payoff = np.asarray(scores, np.float64) - 0.5
    payoff = 0.5 * (payoff - payoff.T)
    first, value = _some_equilibrium(payoff)
    found = minimize(
        _negative_entropy,
        0.9 * first + 0.1 / len(first),
        jac=lambda weights: np.log(np.maximum(weights, 1e-12)) + 1.0,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(first),
        constraints=[
            {"type": "eq", "fun": lambda weights: weights.sum() - 1.0},
            {"type": "ineq", "fun": lambda weights: weights @ payoff - value + SLACK},
        ],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    weights = np.clip(found.x if found.success else first, 0.0, 1.0)
    return np.asarray(weights / weights.sum())


def _some_equilibrium(payoff: Floats) -> tuple[Floats, float]:
    """A mixture [P] whose worst result is the best there is, and that result."""
    count = len(payoff)
    # Unknown are the weights and the result v: maximise v with weights @ payoff >= v.
    bound = np.hstack([-payoff.T, np.ones((count, 1))])
    found = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=bound,
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[*[(0.0, 1.0)] * count, (None, None)],
    )
    return np.asarray(found.x[:-1]), min(float(found.x[-1]), 0.0)


def _negative_entropy(weights: Floats) -> float:
    return float((weights * np.log(np.maximum(weights, 1e-12))).sum())

"""Learning curves as a picture: a line per configuration, its mean and interval over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from aimbot_lab.evaluation.training_aggregates import estimate, mean
from aimbot_lab.experiment.analysis.charts import COLOURS, plain_label
from aimbot_lab.experiment.analysis.learning_curve import LearningCurve
from aimbot_lab.foundation import metric_names as names

Values = npt.NDArray[np.float64]
POINTS = 60  # of a mean over seeds
SUFFIXES = (".png", ".svg", ".pdf")
AXIS: Mapping[str, str] = MappingProxyType(
    {
        names.EVAL_WIN_RATE: "win rate in evaluation",
        names.LEARNING_WIN_RATE: "win rate while learning",
        names.LESSON_WIN_RATE: "win rate in the lesson",
    }
)


@dataclass(frozen=True)
class MeanCurve:
    """The win rate of several seeds by step, over the steps that all of them have."""

    steps: Values  # [P]
    mean: Values  # [P]
    lower: Values  # [P], NaN for a single seed
    upper: Values  # [P]
    seeds: int


def mean_curve(curves: Sequence[LearningCurve], *, points: int = POINTS) -> MeanCurve | None:
    """The mean of `curves`, each a line between its points; None where they share no steps.

    The interval is a bootstrap over trainings at 95 %.
    """
    known = [curve for curve in curves if curve.points]
    low = max((curve.points[0].step for curve in known), default=0)
    high = min((curve.points[-1].step for curve in known), default=0)
    if low >= high:
        return None
    steps = np.linspace(low, high, points)
    rates = np.array([_at(curve, steps) for curve in known])
    found = [estimate(mean, rates[:, [point]], resamples=500) for point in range(points)]
    middle, lower, upper = np.array(found).T
    return MeanCurve(steps, middle, lower, upper, len(known))


def _at(curve: LearningCurve, steps: Values) -> Values:
    """The win rates of `curve` at `steps` [P]."""
    points = np.array(curve.points, np.float64)
    return np.asarray(np.interp(steps, points[:, 0], points[:, 1]), np.float64)


def draw_curves(groups: Mapping[str, Sequence[LearningCurve]], output: Path) -> None:
    """Write the picture of all `groups` to `output`; its ending says of what kind.

    Raises OSError where it can't be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for number, (label, curves) in enumerate(groups.items()):
        found, colour = mean_curve(curves), COLOURS[number % len(COLOURS)]
        if found is None:
            continue
        seeds = f", {found.seeds} seeds" if found.seeds > 1 else ""
        axes.plot(found.steps, found.mean, color=colour, label=f"{plain_label(label)}{seeds}")
        axes.fill_between(found.steps, found.lower, found.upper, color=colour, alpha=0.2, lw=0)
    measure = next(curve.measure for curves in groups.values() for curve in curves)
    axes.set(xlabel="environment steps", ylabel=AXIS[measure], ylim=(0, 1.02))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(output, dpi=120)

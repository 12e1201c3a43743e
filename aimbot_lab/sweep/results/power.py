"""How small a difference a sweep's confirmation finds, by its own trainings of the defaults."""

from collections.abc import Mapping

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.sweep.results.gains import found_share
from aimbot_lab.sweep.results.report import report

MIN_SEEDS = 8
FACTORS = (1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)  # of the steps


def power(record: SweepRecord) -> Mapping[float, float]:
    """How often a confirmation like this one finds values that take so many times the steps.

    Simulated with planted differences from the steps that the defaults took on fresh seeds; the
    share at 1 is that of false findings. Raises ConfigurationError where these are missing.
    """
    if not record.config.measure.counts_steps:
        raise ConfigurationError(f"sweep {record.name!r} does not count steps_to_goal")
    now = report(record)
    defaults = next((one for one in now.confirmed if one.is_default), None)
    if defaults is None or len(defaults.trainings) < MIN_SEEDS:
        raise ConfigurationError(
            f"sweep {record.name!r} has not confirmed the defaults on {MIN_SEEDS} seeds or more, "
            "too few to simulate with"
        )
    steps = [float(score["value"]) for score in defaults.trainings]
    return {
        factor: found_share(
            steps,
            factor,
            seeds=record.config.confirm.seeds,
            comparisons=now.to_confirm - 1,
            limit=float(record.base.config.train.total_steps),
        )
        for factor in FACTORS
    }

"""A sweep with trials, without a training."""

import optuna

from aimbot_lab.sweep.document import load_sweep
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.space import distributions
from aimbot_lab.sweep.storage import choose_storage, open_storage
from aimbot_lab.tracking.data_folder import DataFolder

KEYS = ("env.rewards.spin_penalty", "env.rewards.facing", "env.rewards.in_area")


def add_trial(record: SweepRecord, value: float, *, first: float) -> None:
    space = distributions(record.config.search)
    params = {key: first if key == KEYS[0] else 1.0 for key in space}
    record.study.add_trial(
        optuna.trial.create_trial(value=value, params=params, distributions=space)
    )


def planted(data_folder: DataFolder) -> SweepRecord:
    storage = open_storage(choose_storage(data_folder, "planted", None))
    return begin(storage, load_sweep("planted"), resume=False)

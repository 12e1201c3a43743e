"""The sweep's own run in the tracking store, which its trials' runs lie below."""

from dataclasses import replace

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.sweep.record import PARENT, SweepRecord
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.opening import RunDescription, open_run, rejoin_run
from aimbot_lab.tracking.tracker import Tracker


def join_parent(
    record: SweepRecord, data_folder: DataFolder, *, tracking_uri: str | None = None
) -> Tracker | None:
    """The sweep's run, new or resumed; None where another coordinator here writes to it.

    Raises StoreError where the store can't be used.
    """
    tracker = _joined(record, data_folder, tracking_uri=tracking_uri)
    if tracker is not None:  # a tag, because a sweep may be given more trials and a param stays
        tracker.set_tags({**record.tags, "lab.sweep_trials": str(record.trials)})
    return tracker


def _joined(
    record: SweepRecord, data_folder: DataFolder, *, tracking_uri: str | None
) -> Tracker | None:
    settings = replace(record.config.tracking, tensorboard=False)  # only its trainings have curves
    with record.storage.alone(record.name):
        known = record.parent_run
        if known is None:
            tracker = open_run(
                data_folder, settings, _description(record), tracking_uri=tracking_uri
            )
            record.study.set_user_attr(PARENT, tracker.run_id)
            return tracker
    try:
        return rejoin_run(data_folder, settings, known, tracking_uri=tracking_uri)
    except StoreError:
        return None


def _description(record: SweepRecord) -> RunDescription:
    config = record.config
    return RunDescription(
        name=record.name,
        params={
            "sweep.seeds": config.seeds,
            "sweep.sampler": config.sampler,
            "sweep.pruner": config.pruner.kind,
            "sweep.parallel": config.parallel,
            "sweep.seed": config.seed,
            "sweep.measure": config.objective.measure,
        },
        tags={**record.tags, "lab.sweep": record.name},
    )

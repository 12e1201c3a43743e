"""Who works at a sweep just now: coordinators on any machine, by leases like those of trials."""

import time
import uuid
from collections.abc import Mapping
from typing import Any

import optuna

from aimbot_lab.sweep.leases import Lease, read_lease
from aimbot_lab.sweep.storage import Storage
from aimbot_lab.tracking.runs.ownership import this_process

COORDINATORS = "coordinators"  # attribute of a study: leases by token
RENEWALS = 4  # in the time of a lease


def is_worked_at(study: optuna.Study) -> bool:
    """Whether any coordinator works at the sweep, by this machine's clock."""
    return bool(_living(study, time.time()))


class Presence:
    """A coordinator's sign that it is at work; it ends with the process, or when it is silent."""

    def __init__(self, storage: Storage, study: optuna.Study, *, lease: float) -> None:
        self._storage, self._study, self._lease = storage, study, lease
        self._owner = this_process(uuid.uuid4().hex, None)
        self._due = 0.0

    def show(self) -> None:
        """Say it again where that is due."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._lease / RENEWALS
            self._put(self._lease)

    def leave(self) -> None:
        """Say that the work is over."""
        self._put(None)

    def _put(self, seconds: float | None) -> None:
        with self._storage.alone(self._study.study_name) as now:
            found = _living(self._study, now)
            found.pop(self._owner.token, None)
            if seconds is not None:
                found[self._owner.token] = Lease(self._owner, now + seconds).as_attribute()
            self._study.set_user_attr(COORDINATORS, found)


def _living(study: optuna.Study, now: float) -> dict[str, Mapping[str, Any]]:
    kept: Mapping[str, Mapping[str, Any]] = study.user_attrs.get(COORDINATORS, {})
    leases = {token: read_lease(lease) for token, lease in kept.items()}
    return {t: kept[t] for t, lease in leases.items() if lease and not lease.is_over(now)}

"""Trials are taken by one worker at a time, end once, and outlive their workers."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState, create_trial
from sweep_files import PLANTED, begun_in, changed, loaded, storage_in, taken

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.coordinator import join_parent
from aimbot_lab.sweep.document import LoadedSweep
from aimbot_lab.sweep.record import SweepRecord, begin, load
from aimbot_lab.sweep.report import report
from aimbot_lab.sweep.storage import COORDINATORS, Lease, Presence, Storage
from aimbot_lab.sweep.trial_queue import DEATHS, MAX_DEATHS, Claim, TrialQueue
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run
from aimbot_lab.tracking.run_folder import Owner, this_process


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    return begun_in(tmp_path, PLANTED)


@pytest.fixture
def storage(record: SweepRecord) -> Storage:
    return record.storage


@pytest.fixture
def queue(record: SweepRecord) -> TrialQueue:
    return record.search_queue()


def with_options(**given: Any) -> LoadedSweep:
    sweep = loaded(PLANTED)
    return replace(sweep, config=replace(sweep.config, **given))


def me(token: str = "me") -> Owner:
    return this_process(token, None)


def dead_worker() -> Owner:
    """A process of this machine that has ended."""
    done = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    done.wait()
    return replace(me("dead"), pid=done.pid)


def test_many_that_come_at_once_never_get_the_same_trial(record: SweepRecord) -> None:
    numbers: list[int] = []

    def take(number: int) -> None:
        claim = load(record.storage, "planted").search_queue().take(me(f"worker {number}"))
        if claim is not None:
            numbers.append(claim.number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [0, 1, 2]  # parallel: 3; the others wait for a result
    assert {one.state for one in record.search_queue().trials} == {TrialState.RUNNING}


def test_a_dead_workers_trial_is_picked_up_with_what_it_had(queue: TrialQueue) -> None:
    claim = taken(queue, dead_worker())
    assert queue.note(claim, "score 0", {"value": 0.5})
    again = taken(queue)
    assert (again.number, again.params) == (claim.number, claim.params)
    assert again.attributes["score 0"] == {"value": 0.5}
    assert again.attributes[DEATHS] == 1


def test_a_lease_ends_unless_it_is_renewed(queue: TrialQueue) -> None:
    queue.lease_seconds = 1000.0
    claim = taken(queue, replace(me(), host="another machine"))
    assert queue.reap() == []
    queue.lease_seconds = -1.0
    assert queue.renew(claim)  # from now on it is over
    assert queue.reap() == [claim.number]
    assert queue.trials[claim.number].state == TrialState.WAITING


def test_who_lost_its_trial_changes_nothing_more(queue: TrialQueue) -> None:
    acts: list[Callable[[Claim], bool]] = [
        queue.renew,
        lambda claim: queue.note(claim, "key", 1),
        lambda claim: queue.report(claim, 0, 0.5),
        lambda claim: queue.finish(claim, TrialState.COMPLETE, 0.9),
    ]
    lost, held = taken(queue, dead_worker()), taken(queue)
    assert held.number == lost.number
    assert not any(act(lost) for act in acts)
    assert queue.finish(held, TrialState.COMPLETE, 0.25)
    assert not queue.finish(held, TrialState.COMPLETE, 0.7)  # it ends once
    assert not any(act(lost) for act in acts)
    (trial,) = queue.trials
    assert (trial.value, trial.intermediate_values, "key" in trial.user_attrs) == (0.25, {}, False)


def test_a_trial_that_is_given_back_goes_on_first(queue: TrialQueue) -> None:
    first, _ = taken(queue), taken(queue)
    queue.give_back(first)
    again = taken(queue)
    assert again.number == 0
    assert DEATHS not in again.attributes


def test_a_trial_that_kills_its_workers_fails_in_the_end(queue: TrialQueue) -> None:
    dead = dead_worker()
    assert {taken(queue, dead).number for _ in range(MAX_DEATHS + 1)} == {0}
    assert taken(queue).number == 1
    assert queue.trials[0].state == TrialState.FAIL
    assert "died 6 times" in queue.trials[0].user_attrs["reason"]


def test_a_sweep_that_has_begun_is_gone_on_with_only_as_it_is(
    storage: Storage, record: SweepRecord
) -> None:
    same = with_options(trials=9, workers=1)
    with pytest.raises(ConfigurationError, match=r"0 of 8 trials ended.*--resume"):
        begin(storage, same, resume=False)
    assert begin(storage, same, resume=True).study.user_attrs["trials"] == 8
    assert begin(storage, same, resume=True, trials=9).trials == 9
    other = loaded(changed(PLANTED, ("high: 30", "high: 31")))
    for sweep, what in ((other, "search"), (with_options(parallel=4), "parallel")):
        with pytest.raises(ConfigurationError, match=f"begun with another {what}: begin"):
            begin(storage, sweep, resume=True)


def test_fewer_trials_are_enough_where_a_resume_says_so(
    storage: Storage, record: SweepRecord
) -> None:
    sweep = with_options(trials=2)
    for _ in range(2):
        queue = record.search_queue()
        assert queue.finish(taken(queue), TrialState.COMPLETE, 0.5)
    fewer = begin(storage, sweep, resume=True, trials=2).search_queue()
    assert (fewer.is_done(), fewer.take(me())) == (True, None)
    begun = begin(storage, sweep, resume=True, trials=1).search_queue()
    assert begun.schedule.total(begun.trials) == 2  # what has begun is ended


def test_a_sweep_runs_while_a_coordinator_lives_and_is_at_work(
    storage: Storage, record: SweepRecord
) -> None:
    assert report(record).status == "stopped"
    presence = Presence(storage, record.study, lease=600)
    presence.show()
    assert report(record).status == "running"
    presence.leave()
    assert report(record).status == "stopped"
    lease = Lease(dead_worker(), until=1e12)
    record.study.set_user_attr(COORDINATORS, {"dead": lease.as_attribute()})
    assert report(record).status == "stopped"


def test_the_tags_of_a_sweep_are_kept_and_added_to(tmp_path: Path, storage: Storage) -> None:
    sweep, folder = loaded(PLANTED), DataFolder(tmp_path / "data")
    for given, kept in (
        ({"a": "1"}, {"a": "1"}),
        ({}, {"a": "1"}),
        ({"b": "2"}, {"a": "1", "b": "2"}),
    ):
        record = begin(storage, sweep, resume=True, tags=given)
        assert record.tags == load(storage, "planted").tags == kept
        parent = join_parent(record, folder)
        assert parent is not None
        parent.finish("KILLED")
        assert kept.items() <= find_run(folder, parent.run_id).tags.items()


def test_a_study_that_is_no_sweep_is_left_alone(tmp_path: Path) -> None:
    storage = storage_in(tmp_path, "planted")
    study = optuna.create_study(storage=storage.optuna, study_name="planted")
    study.add_trial(create_trial(value=1.0))
    with pytest.raises(ConfigurationError, match="is not a sweep"):
        begin(storage, loaded(PLANTED), resume=True)
    assert not study.user_attrs

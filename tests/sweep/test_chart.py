"""A sweep that runs is seen on its own run: the best so far by trial, and a note."""

import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState
from sweep_files import PLANTED, loaded

from aimbot_lab.sweep.coordinator import Chart, join_parent
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.report import Pace, confirmation_cost, report, search_cost
from aimbot_lab.sweep.storage import choose_storage, open_storage
from aimbot_lab.sweep.trial import score_key
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.run_folder import this_process
from aimbot_lab.tracking.tracker import MemoryTracker

NOTE = "mlflow.note.content"
CONFIRMING = PLANTED.replace("best: 0", "best: 2, seeds: 6")


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    storage = open_storage(choose_storage(DataFolder(tmp_path / "data"), "planted", None))
    return begin(storage, loaded(CONFIRMING), resume=False)


def end(record: SweepRecord, value: float | None, *, seconds: float = 30.0) -> None:
    queue = record.search_queue()
    claim = queue.take(this_process("me", None))
    assert claim is not None
    score = {"seed": 1, "value": value, "steps": 9, "seconds": seconds, "episodes": 10, "wins": 5}
    if value is not None:
        queue.note(claim, score_key(0), score)
    queue.finish(claim, TrialState.FAIL if value is None else TrialState.COMPLETE, value)


def test_each_trial_that_ends_adds_a_point_and_renews_the_note(record: SweepRecord) -> None:
    parent = MemoryTracker()
    chart = Chart(record, parent)
    for value in (0.4, 0.7, None, 0.5):
        end(record, value)
        chart.draw(report(record))
        assert "| 0&emsp; |" in parent.tags[NOTE]
    assert parent.metrics == {"best/so_far": [(0, 0.4), (1, 0.7), (2, 0.7), (3, 0.7)]}
    assert "4 of 8 trials ended" in parent.tags[NOTE]
    assert "**Best: trial 1**" in parent.tags[NOTE]
    assert not re.search(r"\d{6}", parent.tags[NOTE])  # values as a person reads them


def test_a_trial_that_ends_early_waits_for_those_before_it(record: SweepRecord) -> None:
    parent = MemoryTracker()
    queue = record.search_queue()
    first = queue.take(this_process("slow", None))
    assert first is not None
    end(record, 0.7)
    Chart(record, parent).draw(report(record))
    assert not parent.metrics
    queue.finish(first, TrialState.COMPLETE, 0.4)
    Chart(record, parent).draw(report(record))
    assert parent.metrics == {"best/so_far": [(0, 0.4), (1, 0.7)]}


def test_a_sweep_that_goes_on_draws_no_point_twice(record: SweepRecord) -> None:
    parent = MemoryTracker()
    for value in (0.4, 0.7):
        end(record, value)
        Chart(record, parent).draw(report(record))
    assert parent.metrics == {"best/so_far": [(0, 0.4), (1, 0.7)]}


def test_the_runs_number_of_trials_follows_the_sweeps(record: SweepRecord, tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    for trials in (None, 12):
        begun = begin(record.storage, loaded(CONFIRMING), resume=True, trials=trials)
        parent = join_parent(begun, folder)
        assert parent is not None
        parent.finish("KILLED")
    with sqlite3.connect(tmp_path / "data" / "mlflow.db") as store:
        tags = dict(store.execute("SELECT key, value FROM tags"))
        params: list[Any] = [key for (key,) in store.execute("SELECT key FROM params")]
    assert tags["lab.sweep_trials"] == "12"
    assert "sweep.trials" not in params


def test_costs_are_told_before_they_are_spent(record: SweepRecord) -> None:
    assert search_cost(record, left=8) == (
        "8 trials of 2 trainings each; then up to 3 sets of values on 6 fresh seeds to confirm "
        "the best"
    )
    for value in (0.4, 0.7, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5):
        end(record, value)
    told = confirmation_cost(record, report(record), workers=2)
    # 3 sets on 6 seeds, 30 s each, by two workers
    assert told == "confirming: 3 sets of values on 6 fresh seeds, 18 trainings, about 4 min"


def test_the_time_left_of_a_confirmation_counts_its_own_trials(record: SweepRecord) -> None:
    clock = [0.0]
    now = replace(report(record), status="confirming", to_confirm=4, total=8, ended=8)
    pace = Pace(lambda: clock[0])
    assert pace.seconds_left(now, {}) is None
    clock[0] = 10.0
    assert pace.seconds_left(replace(now, confirm_ended=1), {("confirm", 1): 0.0}) == 30.0


def test_no_time_is_left_where_the_last_trial_is_still_at_work(record: SweepRecord) -> None:
    clock = [0.0]
    now = replace(report(record), status="searching", total=2, ended=0)
    pace = Pace(lambda: clock[0])
    assert pace.seconds_left(now, {}) is None
    clock[0] = 10.0
    at_work = {("search", 0): 1.0, ("search", 1): 1.0}
    assert pace.seconds_left(replace(now, ended=1), at_work) == 0.0

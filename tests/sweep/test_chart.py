"""A sweep that runs is seen on its own run: the best so far by trial, and a note."""

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState
from sweep_files import PLANTED, begun_in, loaded, taken

from aimbot_lab.sweep.coordinator import Chart, join_parent
from aimbot_lab.sweep.record import SweepRecord, begin
from aimbot_lab.sweep.report import confirmation_cost, report, search_cost
from aimbot_lab.sweep.trial import score_key
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import MemoryTracker

NOTE = "mlflow.note.content"
CONFIRMING = PLANTED.replace("best: 0", "best: 2, seeds: 6")


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    return begun_in(tmp_path, CONFIRMING)


def end(record: SweepRecord, value: float | None) -> None:
    queue = record.search_queue()
    claim = taken(queue)
    score = {"seed": 1, "value": value, "steps": 9, "seconds": 30.0, "episodes": 10, "wins": 5}
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


def test_a_trial_that_ends_early_waits_for_those_before_it_and_none_is_drawn_twice(
    record: SweepRecord,
) -> None:
    parent, queue = MemoryTracker(), record.search_queue()
    first = taken(queue)
    end(record, 0.7)
    Chart(record, parent).draw(report(record))
    assert not parent.metrics
    queue.finish(first, TrialState.COMPLETE, 0.4)
    for _ in range(2):
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

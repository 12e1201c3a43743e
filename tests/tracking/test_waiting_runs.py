"""What waits for a store that can't be reached is told, not hidden."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from dead_runs import leave_folder

from aimbot_lab.cli.commands.runs import MAX_WAITING, runs
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.journal import EndEntry, Journal, MetricsEntry
from aimbot_lab.tracking.ownership import this_process
from aimbot_lab.tracking.run_folder import WaitingRun, create_run_folder, waiting_runs

NOWHERE = "http://me:secret@127.0.0.1:9"


@pytest.fixture
def folder(tmp_path):
    """A data folder without a store."""
    return DataFolder(tmp_path / "data")


def leave(folder, run_id, *, entries=3, pid=None, uri=NOWHERE):
    """A run that ended with `entries` in its journal, of a process that is gone."""
    owner = replace(this_process(f"token of {run_id}", uri), pid=pid)
    path = leave_folder(folder, owner).named(run_id).path
    journal = Journal(path)
    for step in range(entries - 1):
        journal.append(MetricsEntry(step, 1000, {"x": 1.0}))
    journal.append(EndEntry("FINISHED", 2000))
    journal.close()
    return path


def call(folder, *arguments):
    return CliRunner().invoke(runs, ["--data-dir", str(folder.root), *arguments])


def test_waiting_runs_say_how_much_waits_for_whom(folder):
    leave(folder, "a" * 32)
    leave(folder, "b" * 32, entries=1, uri=None)
    assert waiting_runs(folder) == [
        WaitingRun("a" * 32, 3, "http://me:***@127.0.0.1:9"),
        WaitingRun("b" * 32, 1, folder.tracking_uri),
    ]


def test_living_runs_and_runs_without_a_name_do_not_wait(folder):
    create_run_folder(folder, this_process("living", None)).named("a" * 32)
    leave_folder(folder, this_process("nameless", None))
    assert waiting_runs(folder) == []
    assert waiting_runs(DataFolder(folder.root / "none")) == []


def test_runs_says_what_waits_in_place_of_no_runs(folder):
    leave(folder, "a" * 32)
    shown = call(folder)
    assert shown.exit_code == 0
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert f"run {'a' * 32}: 3 tracked entries could not be delivered" in line
    assert "delivered now: tracking store http://127.0.0.1:9: Failed to establish" in line
    assert json.loads(call(folder, "--json").stdout) == []


def test_many_waiting_runs_are_summed_up(folder):
    for number in range(MAX_WAITING + 3):
        leave(folder, f"{number:032}")
    lines = call(folder).stderr.splitlines()
    assert len(lines) == MAX_WAITING + 1
    assert lines[-1] == "the same holds for 3 more runs"


def test_runs_without_anything_says_how_to_begin(folder):
    assert "no runs yet" in call(folder).stderr


def test_what_waited_for_a_store_that_is_back_is_delivered_and_listed(data_folder, dead_run):
    shown = call(data_folder)
    assert f"closed the run of a dead process: {dead_run.run_id}" in shown.stderr
    assert "could not be delivered" not in shown.stderr
    assert dead_run.run_id in shown.stdout

"""The part Sweep, without a training: a study is begun, and trials are put into it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from panel_server import Page, running_panel
from planted_sweep import KEYS, add_trial, planted

from aimbot_lab.sweep.record import SweepRecord
from aimbot_lab.tracking.data_folder import DataFolder


@pytest.fixture
def record(tmp_path: Path) -> SweepRecord:
    return planted(DataFolder(tmp_path))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with running_panel(tmp_path, here=tmp_path) as panel, panel.page() as opened:
        yield opened


def test_trials_show_as_they_end_with_the_best_so_far(record: SweepRecord, page: Page) -> None:
    add_trial(record, 0.25, first=0.5)
    page.ask("sweep", "list")
    (line,) = page.wait_for("sweep", "sweeps")["sweeps"]
    assert line["name"] == "planted"
    page.ask("sweep", "watch", name="planted")
    told = page.wait_for("sweep", "report")
    assert (told["ended"], told["total"], told["best"]) == (1, 30, 0)
    assert set(told["keys"]) == set(KEYS)
    add_trial(record, 0.75, first=2.0)
    told = page.wait_for("sweep", "report", lambda body: body["ended"] == 2)
    assert told["best"] == 1
    trial = told["trials"][1]
    assert (trial["value"], trial["state"]) == (0.75, "done")
    assert trial["values"][told["keys"].index(KEYS[0])] == 2.0


def test_a_name_that_was_not_listed_opens_nothing(page: Page, tmp_path: Path) -> None:
    for name in ("gone", "../runs", "/etc"):
        assert page.ask("sweep", "watch", name=name) == {"done": True}
        told = page.wait_for("sweep", "error")
        assert told["message"] == "there is no such sweep in this data folder any more"
    assert not (tmp_path / "sweeps").exists()


def test_a_file_that_is_no_study_is_told_in_a_line(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "sweeps" / "odd"
    folder.mkdir(parents=True)
    (folder / "study.db").write_bytes(b"nothing like this")
    page.ask("sweep", "watch", name="odd")
    told = page.wait_for("sweep", "error")["message"]
    assert "\n" not in told
    assert "not a database" in told

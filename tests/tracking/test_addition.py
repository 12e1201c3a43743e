"""What is added to a run that has ended."""

from pathlib import Path

import pytest

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.history import (
    Addition,
    add_to_run,
    download_artifact,
    find_run,
    metric_history,
)
from aimbot_lab.tracking.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings


@pytest.fixture
def run_id(data_folder):
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("ended"))
    tracker.log_metrics(5, {"eval/win_rate": 0.25})
    tracker.finish("FAILED")
    return tracker.run_id


def test_a_run_that_ended_takes_numbers_tags_and_files_and_stays_ended(
    data_folder, run_id, tmp_path
):
    (tmp_path / "clip.gif").write_bytes(b"GIF")
    addition = Addition(
        step=9,
        metrics={"eval/win_rate": 0.75},
        tags={"lab.lesson": "second"},
        texts={"evaluation/last.json": "{}", "top.txt": "é"},
        files={"video/clip.gif": tmp_path / "clip.gif"},
    )
    add_to_run(data_folder, run_id, addition)
    run = find_run(data_folder, run_id)
    assert (run.status, run.tags["lab.lesson"]) == ("FAILED", "second")
    points = metric_history(data_folder, run_id, key="eval/win_rate")
    assert [(point.step, point.value) for point in points] == [(5, 0.25), (9, 0.75)]
    names = ["evaluation/last.json", "top.txt", "video/clip.gif"]
    found = [download_artifact(data_folder, run_id, name=name).read_bytes() for name in names]
    assert found == [b"{}", "é".encode(), b"GIF"]


def test_an_artifact_is_replaced_by_its_successor(data_folder, run_id):
    for text in ("first", "second"):
        add_to_run(data_folder, run_id, Addition(texts={"a/b.txt": text}))
    assert download_artifact(data_folder, run_id, name="a/b.txt").read_text() == "second"


def test_a_run_that_is_not_there_takes_nothing(data_folder):
    with pytest.raises(StoreError, match="0123"):
        add_to_run(data_folder, "0123", Addition(tags={"a": "b"}))


@pytest.mark.parametrize("name", ["../above.txt", "/etc/passwd", "a/../../b"])
def test_a_file_cannot_leave_the_runs_folder(data_folder, run_id, tmp_path: Path, name: str):
    with pytest.raises(ValueError, match="is not an artifact name"):
        add_to_run(data_folder, run_id, Addition(texts={name: "x"}))

"""What every Tracker must do, run against the shipped fake and the real one."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from aimbot_lab.tracking.data_folder import embedded_address
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import MemoryTracker


class ReadBack(NamedTuple):
    metrics: dict[str, list[tuple[int, float]]]
    tags: dict[str, str]
    artifacts: dict[str, bytes]
    status: str


class MemoryCase:
    def __init__(self):
        self.tracker = MemoryTracker()

    def read(self):
        kept = self.tracker
        return ReadBack(kept.metrics, kept.tags, kept.artifacts, kept.status)


class MlflowCase:
    def __init__(self, data_folder):
        self.tracker = open_run(data_folder, TrackingSettings(), RunDescription("conformance"))
        self._data_folder = data_folder

    def read(self):
        from aimbot_lab.tracking.mlflow_store import connect

        client = connect(self._data_folder, embedded_address(self._data_folder)).client
        run = client.get_run(self.tracker.run_id)
        metrics = {
            key: [(row.step, row.value) for row in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
        top = self._data_folder.artifacts / run.info.run_id / "artifacts"
        artifacts = {
            path.relative_to(top).as_posix(): path.read_bytes()
            for path in top.rglob("*")
            if path.is_file()
        }
        return ReadBack(metrics, run.data.tags, artifacts, run.info.status)


@pytest.fixture(params=["memory", "mlflow"])
def case(request):
    if request.param == "memory":
        return MemoryCase()
    return MlflowCase(request.getfixturevalue("data_folder"))


def test_metrics_arrive_once_each_and_in_order_and_what_is_not_finite_as_nan(case):
    for step in range(0, 3000, 30):
        case.tracker.log_metrics(step, {"win_rate/goto/1": step / 7, "speed": -step})
    many = {f"k/{i}": float(i) for i in range(1003)}  # more than one call takes
    case.tracker.log_metrics(5, many)
    for step, value in enumerate((math.nan, math.inf, -math.inf)):
        case.tracker.log_metrics(step, {"loss": value})
    assert case.tracker.finish("FINISHED").complete
    metrics = case.read().metrics
    assert metrics.pop("win_rate/goto/1") == [(step, step / 7) for step in range(0, 3000, 30)]
    assert metrics.pop("speed") == [(step, -step) for step in range(0, 3000, 30)]
    rows = metrics.pop("loss")
    assert [(step, math.isnan(value)) for step, value in rows] == [(n, True) for n in range(3)]
    assert metrics == {key: [(5, value)] for key, value in many.items()}


def test_a_tag_keeps_its_last_value_and_a_long_note_is_cut_not_refused(case):
    case.tracker.set_tags({"lab.lesson": "1", "lab.seed": "7"})
    case.tracker.set_tags({"lab.lesson": "2"})
    case.tracker.set_note("x" * 9000)
    assert case.tracker.finish("FINISHED").complete
    kept = {"lab.lesson": "2", "lab.seed": "7", "mlflow.note.content": "x" * 7999 + "…"}
    assert case.read().tags.items() >= kept.items()


def test_texts_and_files_read_back_byte_for_byte(case, tmp_path):
    source = tmp_path / "agent (1).zip"
    source.write_bytes(bytes(range(256)))
    with pytest.raises(OSError, match="missing"):
        case.tracker.log_file(tmp_path / "missing.zip")  # the caller's error
    case.tracker.log_text("a: ü\r\n", "curriculum.yaml")
    case.tracker.log_text("first", "notes/deep/summary.md")
    case.tracker.log_text("second", "notes/deep/summary.md")
    case.tracker.log_file(source)
    case.tracker.log_file(source, "agents/best")
    source.unlink()
    assert case.tracker.finish("FINISHED").complete
    assert case.read().artifacts == {
        "curriculum.yaml": "a: ü\r\n".encode(),
        "notes/deep/summary.md": b"second",
        "agent (1).zip": bytes(range(256)),
        "agents/best/agent (1).zip": bytes(range(256)),
    }


def test_a_growing_file_is_an_artifact_at_the_top_at_the_end_and_may_be_taken_back(case):
    with pytest.raises(ValueError, match="no folder"):
        case.tracker.grow("a/b.csv", "", place=0)
    assert case.tracker.grow("a.csv", "head\n", place=0)
    assert case.tracker.grow("a.csv", "ü,1\n", place=5)
    assert case.tracker.grow("a.csv", "lost\n", place=10)
    assert case.tracker.grow("b.jsonl", "{}\n", place=7)
    assert case.tracker.grow("a.csv", "2\n", place=10)
    assert case.tracker.finish("FINISHED").complete
    assert case.read().artifacts == {"a.csv": "head\nü,1\n2\n".encode(), "b.jsonl": b"{}\n"}


def test_a_name_that_the_store_refuses_is_refused_at_once_and_none_leaves_the_runs_folder(case):
    for key in ("", "a[0]", "a,b", "/a", "a//b", "../a", "a/", "x" * 251, "a\n"):
        with pytest.raises(ValueError, match="name"):
            case.tracker.log_metrics(0, {"good": 1.0, key: 1.0})
        with pytest.raises(ValueError, match="name"):
            case.tracker.set_tags({key: "x"})
    for name in ("", "/etc/x", "../x", "a/../../x", "a\\b", "."):
        with pytest.raises(ValueError, match="name"):
            case.tracker.log_text("x", name)
    case.tracker.finish("FINISHED")
    found = case.read()
    assert (found.metrics, found.artifacts) == ({}, {})


def test_after_the_end_nothing_can_be_logged_and_the_first_status_stays(case):
    tracker = case.tracker
    assert tracker.run_id
    assert tracker.experiment_id
    assert tracker.tracking_uri
    assert [tracker.finish(status).status for status in ("KILLED", "FINISHED")] == ["KILLED"] * 2
    assert case.read().status == "KILLED"
    for call in (
        lambda: tracker.log_metrics(1, {"a": 1.0}),
        lambda: tracker.set_tags({"a": "b"}),
        lambda: tracker.set_note("x"),
        lambda: tracker.log_text("x", "a.txt"),
        lambda: tracker.log_file(Path(__file__)),
        lambda: tracker.grow("a.csv", "", place=0),
    ):
        with pytest.raises(RuntimeError, match="ended"):
            call()

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


def test_metrics_arrive_once_each_and_in_order(case):
    for step in range(0, 3000, 30):
        case.tracker.log_metrics(step, {"win_rate/goto/1": step / 7, "speed": -step})
    assert case.tracker.finish("FINISHED").complete
    metrics = case.read().metrics
    assert metrics["win_rate/goto/1"] == [(step, step / 7) for step in range(0, 3000, 30)]
    assert metrics["speed"] == [(step, -step) for step in range(0, 3000, 30)]


def test_more_metrics_than_one_call_takes_all_arrive(case):
    case.tracker.log_metrics(5, {f"k/{i}": float(i) for i in range(1003)})
    assert case.tracker.finish("FINISHED").complete
    assert case.read().metrics == {f"k/{i}": [(5, float(i))] for i in range(1003)}


def test_a_value_that_is_not_finite_is_kept_as_nan(case):
    for step, value in enumerate((math.nan, math.inf, -math.inf)):
        case.tracker.log_metrics(step, {"loss": value})
    assert case.tracker.finish("FINISHED").complete
    rows = case.read().metrics["loss"]
    assert [step for step, _ in rows] == [0, 1, 2]
    assert all(math.isnan(value) for _, value in rows)


def test_a_tag_keeps_its_last_value(case):
    case.tracker.set_tags({"lab.lesson": "1", "lab.seed": "7"})
    case.tracker.set_tags({"lab.lesson": "2"})
    assert case.tracker.finish("FINISHED").complete
    tags = case.read().tags
    assert (tags["lab.lesson"], tags["lab.seed"]) == ("2", "7")


def test_a_long_note_is_cut_not_refused(case):
    case.tracker.set_note("x" * 9000)
    assert case.tracker.finish("FINISHED").complete
    assert case.read().tags["mlflow.note.content"] == "x" * 7999 + "…"


def test_texts_and_files_read_back_byte_for_byte(case, tmp_path):
    source = tmp_path / "agent (1).zip"
    source.write_bytes(bytes(range(256)))
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


def test_a_growing_file_is_an_artifact_at_the_end_and_may_be_taken_back(case):
    assert case.tracker.grow("a.csv", "head\n", place=0)
    assert case.tracker.grow("a.csv", "ü,1\n", place=5)
    assert case.tracker.grow("a.csv", "lost\n", place=10)
    assert case.tracker.grow("b.jsonl", "{}\n", place=7)
    assert case.tracker.grow("a.csv", "2\n", place=10)
    assert case.tracker.finish("FINISHED").complete
    assert case.read().artifacts == {"a.csv": "head\nü,1\n2\n".encode(), "b.jsonl": b"{}\n"}


def test_a_growing_file_lies_at_the_top(case):
    with pytest.raises(ValueError, match="no folder"):
        case.tracker.grow("a/b.csv", "", place=0)
    case.tracker.finish("FINISHED")
    with pytest.raises(RuntimeError, match="ended"):
        case.tracker.grow("a.csv", "", place=0)


def test_finishing_twice_keeps_the_first_status(case):
    assert case.tracker.run_id
    assert case.tracker.experiment_id
    assert case.tracker.tracking_uri
    assert case.tracker.finish("KILLED").status == "KILLED"
    assert case.tracker.finish("FINISHED").status == "KILLED"
    assert case.read().status == "KILLED"


def test_a_name_that_the_store_refuses_is_refused_at_once(case):
    for key in ("", "a[0]", "a,b", "/a", "a//b", "../a", "a/", "x" * 251, "a\n"):
        with pytest.raises(ValueError, match="name"):
            case.tracker.log_metrics(0, {"good": 1.0, key: 1.0})
        with pytest.raises(ValueError, match="name"):
            case.tracker.set_tags({key: "x"})
    case.tracker.finish("FINISHED")
    assert case.read().metrics == {}


def test_an_artifact_cannot_leave_the_runs_folder(case):
    for name in ("", "/etc/x", "../x", "a/../../x", "a\\b", "."):
        with pytest.raises(ValueError, match="name"):
            case.tracker.log_text("x", name)
    case.tracker.finish("FINISHED")
    assert case.read().artifacts == {}


def test_a_file_that_cannot_be_read_is_the_callers_error(case, tmp_path):
    with pytest.raises(OSError, match="missing"):
        case.tracker.log_file(tmp_path / "missing.zip")
    assert case.tracker.finish("FINISHED").complete


def test_nothing_can_be_logged_after_the_end(case):
    tracker = case.tracker
    tracker.finish("FINISHED")
    for call in (
        lambda: tracker.log_metrics(1, {"a": 1.0}),
        lambda: tracker.set_tags({"a": "b"}),
        lambda: tracker.set_note("x"),
        lambda: tracker.log_text("x", "a.txt"),
        lambda: tracker.log_file(Path(__file__)),
    ):
        with pytest.raises(RuntimeError):
            call()

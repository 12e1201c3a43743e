"""`run --seeds` and `compare --by config`: several seeds as one result."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tiny_runs import begin_in, invoke, train, write

from aimbot_lab.cli.training import side_by_side
from aimbot_lab.experiment.analysis.learning_curve import interquartile_mean
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs

ENDLESS = ("--set", "train.total_steps=500000000", "--data-dir", "data")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def two(data: Path, file: Path) -> dict[str, Any]:
    words = ("run", file, "--seeds", 2, "--name", "pair", "--json")
    told = invoke(data, *words, wanted=(0, 1))
    assert told.said.count("Look at it: ") == 1  # for all seeds
    document: dict[str, Any] = told.document
    return document


def test_every_seed_is_a_run_like_one_trained_alone(
    data: Path, file: Path, two: dict[str, Any]
) -> None:
    assert [one["seed"] for one in two["runs"]] == [7, 8]
    assert [one["name"] for one in two["runs"]] == [f"pair seed {n}" for n in (7, 8)]
    alone = train(data, file, "--seed", 8)
    assert two["runs"][1]["state_sha256"] == alone["state_sha256"]
    runs = {run.run_id: run for run in list_runs(DataFolder(data))}
    configs = {runs[one["run_id"]].tags["lab.config"] for one in two["runs"]}
    assert len(configs) == 1


def test_the_summary_is_that_of_the_runs_compared_by_configuration(
    data: Path, two: dict[str, Any]
) -> None:
    (one,) = two["summary"]["configurations"]
    scores = np.array([[c["win_rate"] for c in run["scores"]["cells"]] for run in one["runs"]])
    assert scores.shape == (2, 2)
    assert one["mean"]["value"] == pytest.approx(scores.mean())
    assert one["iqm"]["value"] == pytest.approx(interquartile_mean(scores))
    assert one["mean"]["lower"] <= one["mean"]["value"] <= one["mean"]["upper"]
    ids = [run["run_id"] for run in two["runs"]]
    words = ("compare", "--by", "config", *ids, "--episodes", 100, "--json")
    again = invoke(data, *words).document["configurations"]
    for found in (*one["runs"], *again[0]["runs"]):
        found.pop("seconds")
    assert again[0]["runs"] == one["runs"]
    assert again[0]["mean"] == one["mean"]
    assert again[0]["difference"] is None


def test_configurations_are_told_apart_and_compared(
    data: Path, file: Path, two: dict[str, Any]
) -> None:
    other = train(data, file, "--set", "train.gamma=0.5")
    ids = [run["run_id"] for run in two["runs"]]
    told = invoke(data, "compare", "--by", "config", *ids, other["run_id"], "--episodes", 20)
    assert "beats the first" in told.output
    assert "train.gamma" in told.output
    rows = [line for line in told.output.splitlines() if line.startswith(("pair  ", "tiny  "))]
    assert [row.split()[:2] for row in rows] == [["pair", "2"], ["tiny", "1"]]
    assert "less the first [95 %]" in told.output
    assert re.search(r" [-+]\d+\.\d points$", rows[1])  # of a single run: no interval
    pages = list((data / "comparisons").glob("*.html"))
    assert any("beats the first" in page.read_text() for page in pages)


def test_more_trainings_than_cores_never_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert [side_by_side(count) for count in (1, 2, 5)] == [1, 2, 2]


@pytest.mark.parametrize("words", [("--resume",), ("--set", "train.gama=1")])
def test_a_fault_is_told_once_and_before_any_training(
    data: Path, file: Path, words: tuple[str, ...]
) -> None:
    before = len(list_runs(DataFolder(data), max_results=1000))
    told = invoke(data, "run", file, "--seeds", 2, *words, wanted=2)
    assert "seed 7:" not in told.said
    assert len(list_runs(DataFolder(data), max_results=1000)) == before


@pytest.mark.campaign
def test_trainings_whose_starter_is_killed_stop_and_save(file: Path, tmp_path: Path) -> None:
    process = begin_in(tmp_path, "run", str(file), "--seeds", "1", *ENDLESS)
    assert process.stderr is not None
    next(line for line in process.stderr if "steps/s" in line)
    trainings = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    _, left = psutil.wait_procs(trainings, timeout=300)
    for training in left:
        training.kill()
    assert trainings
    assert not left
    (run,) = list_runs(DataFolder(tmp_path / "data"))
    assert (run.status, run.tags["lab.ended"]) == ("KILLED", "stopped")


@pytest.mark.campaign
def test_ctrl_c_stops_all_and_each_can_be_resumed(file: Path, tmp_path: Path) -> None:
    process = begin_in(tmp_path, "run", str(file), "--seeds", "2", *ENDLESS, "--json")
    assert process.stderr is not None
    training = set()
    for line in process.stderr:
        if "steps/s" in line:
            training.add(line.split(":")[0])
        if len(training) == side_by_side(2):
            break
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=240)
    assert process.returncode == 130
    ended = json.loads(output)["runs"]
    assert {one["status"] for one in ended} == {"KILLED"}
    for one in ended:
        assert one["resumes_at"] is not None
        assert f"seed {one['seed']}: aimbot-lab resume {one['run_id'][:12]}" in said

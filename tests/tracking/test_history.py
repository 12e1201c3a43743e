"""Lists of runs: what they hold, the win rate they show, and what is added after the end."""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from math import nan

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.commands.runs import runs as runs_command
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError, StoreError
from aimbot_lab.tracking import mlflow_store
from aimbot_lab.tracking.data_folder import DataFolder, choose_address
from aimbot_lab.tracking.history import (
    Addition,
    add_to_run,
    delete_run,
    download_artifact,
    find_run,
    list_runs,
    matching_runs,
    metric_history,
    read_run,
)
from aimbot_lab.tracking.journal import MetricsEntry
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import PARENT, RunSummary, run_filter
from aimbot_lab.tracking.ui import ui_command


def finished_run(data_folder, name, *, experiment="x"):
    tracker = open_run(data_folder, TrackingSettings(experiment=experiment), RunDescription(name))
    tracker.log_metrics(1, {"win_rate/pooled": 0.25})
    tracker.log_metrics(2, {"win_rate/pooled": 0.75})
    tracker.finish("FINISHED")
    return tracker.run_id


def test_runs_of_all_experiments_come_newest_first_and_each_is_found(
    data_folder, tmp_path, monkeypatch
):
    ids = [finished_run(data_folder, f"run {i}", experiment=f"e{i}") for i in range(3)]
    runs = list_runs(data_folder)
    assert [run.run_id for run in runs] == ids[::-1]
    assert [run.experiment for run in runs] == ["e2", "e1", "e0"]
    assert list_runs(data_folder, max_results=2) == runs[:2]
    assert [find_run(data_folder, run_id[:12]).run_id for run_id in ids] == ids
    assert find_run(data_folder, "latest").run_id == ids[2]
    read = counted_runs(monkeypatch)
    assert read_run(data_folder, ids[0]) == runs[2]
    assert len(read) == 1  # by its whole id, without a look at the others
    for beginning in ("", "xyz"):
        with pytest.raises(ConfigurationError, match=r"no such run.*aimbot-lab runs"):
            find_run(data_folder, beginning)
    for run_id in ("0" * 32, "' OR 1"):
        for folder in (data_folder, DataFolder(tmp_path / "none")):
            with pytest.raises(ConfigurationError, match="no such run; aimbot-lab runs") as caught:
                read_run(folder, run_id)
            assert "\n" not in str(caught.value)


def test_a_summary_says_how_the_run_stands(data_folder):
    before = datetime.now(UTC)
    tracker = open_run(data_folder, TrackingSettings(), RunDescription("running"))
    (run,) = list_runs(data_folder)
    assert (run.status, run.ended, run.seconds) == ("RUNNING", None, None)
    tracker.finish("KILLED")
    finished_run(data_folder, "named")
    run, _ = list_runs(data_folder)
    assert (run.name, run.experiment, run.status) == ("named", "x", "FINISHED")
    assert run.metrics == {"win_rate/pooled": 0.75}
    assert run.tags["mlflow.source.name"] == "aimbot-lab"
    assert abs((run.started - before).total_seconds()) < 60
    assert run.seconds == (run.ended - run.started).total_seconds() >= 0


def test_a_run_with_a_damaged_time_hides_no_other(data_folder):
    ids = [finished_run(data_folder, name) for name in ("damaged", "other")]
    for time_ms in (-(10**18), 10**18, "x"):
        with closing(sqlite3.connect(data_folder.database)) as database, database:
            written = "UPDATE runs SET start_time = ?, end_time = ? WHERE run_uuid = ?"
            database.execute(written, (time_ms, time_ms, ids[0]))
        found = {run.run_id: run.started.year for run in list_runs(data_folder)}
        assert found == {ids[0]: 1970, ids[1]: datetime.now(UTC).year}


def test_without_a_store_there_are_no_runs_and_nothing_is_made(tmp_path):
    folder = DataFolder(tmp_path / "none")
    assert list_runs(folder) == []
    assert not folder.root.exists()


def test_reading_from_a_mistyped_database_makes_none(tmp_path):
    file = tmp_path / "mistyped.db"
    data, uri = DataFolder(tmp_path / "data"), f"sqlite:///{file}"
    for read in (
        lambda: list_runs(data, tracking_uri=uri),
        lambda: find_run(data, "latest", tracking_uri=uri),
        lambda: read_run(data, "a" * 32, tracking_uri=uri),
        lambda: download_artifact(data, "a" * 32, name="x", tracking_uri=uri),
        lambda: ui_command(data, tracking_uri=uri),
    ):
        with pytest.raises(ConfigurationError, match=f"{uri}: there is no file {file}"):
            read()
    assert [*tmp_path.iterdir()] == []


def test_two_runs_that_begin_so_are_not_guessed_between(data_folder, store):
    experiment = store.experiment_id("x")
    ids = [store.create_run(experiment, "run", tags={}) for _ in range(17)]  # two begin alike
    first = [run_id[0] for run_id in ids]
    common = next(letter for letter in first if first.count(letter) > 1)
    with pytest.raises(ConfigurationError, match="several runs begin with that"):
        find_run(data_folder, common)


def counted_runs(monkeypatch):
    """A list of the runs that are read from now on."""
    read, summary = [], mlflow_store._summary

    def counted(run, experiment):
        read.append(run.info.run_id)
        return summary(run, experiment)

    monkeypatch.setattr(mlflow_store, "_summary", counted)
    return read


RUN_NAMES = ("walker", "Walker", "50%_a'b\"c", "a\\b [x] ö;--", "walker 2")


@pytest.fixture(scope="module")
def many_runs(tmp_path_factory):
    """A data folder whose runs differ in all that a filter reads, and have equal win rates, too."""
    folder, rng = DataFolder(tmp_path_factory.mktemp("many")), random.Random(1)
    store = mlflow_store.connect(folder, choose_address(folder))
    experiments = [store.experiment_id(name) for name in ("goto", "go[t]o")]
    for _ in range(80):
        tags = {"why": rng.choice(RUN_NAMES)} if rng.random() < 0.8 else {}
        tags |= {PARENT: "x"} if rng.random() < 0.2 else {}
        run_id = store.create_run(rng.choice(experiments), rng.choice(RUN_NAMES), tags=tags)
        metrics = {}
        for measure in ("eval/win_rate", "learning/win_rate"):
            if rng.random() < 0.7:
                metrics[measure] = rng.choice((nan, *(k / 20 for k in range(21))))
                half = rng.random()
                metrics[f"{measure}_lower"] = metrics[measure] - half
                metrics[f"{measure}_upper"] = metrics[measure] + half
        if metrics:
            store.run(run_id, folder.root).send([MetricsEntry(1, 1, metrics)])
    return folder


@pytest.fixture(scope="module")
def all_of_them(many_runs):
    return list_runs(many_runs, max_results=1000)


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize(
    "filters",
    [
        (),
        ("name=walker*",),
        ("name=*_a'b\"*",),
        ("name=a\\b [[]x] ö;--",),
        ("name=[wW]alker", "why=*"),
        ("experiment=go[[]t]o", "status=running"),
        ("no`such`key='",),
    ],
)
def test_the_store_finds_what_a_look_at_every_run_finds(many_runs, all_of_them, filters, best):
    for with_trials in (False, True):
        wanted = run_filter(filters, with_trials=with_trials)
        every = [*filter(wanted.takes, all_of_them)]
        if best:
            rated = [run for run in every if run.win_rate]
            every = sorted(rated, key=lambda run: -run.win_rate.value)
        ids = [run.run_id for run in every]
        for count in (3, 1000):
            found = matching_runs(many_runs, wanted, max_results=count, best=best)
            assert [run.run_id for run in found] == ids[:count], count


def test_few_runs_are_read_of_many(many_runs, monkeypatch):
    read = counted_runs(monkeypatch)
    for filters, best, most in ((("name=walker",), False, 3), ((), True, 40)):
        wanted = run_filter(filters, with_trials=True)
        assert len(matching_runs(many_runs, wanted, max_results=3, best=best)) == 3
        assert len(read) <= most
        read.clear()


NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = RunSummary("a" * 32, "one", "walks", "1", "FINISHED", NOW, NOW, {}, {})
LEARNING = {
    names.LEARNING_WIN_RATE: 0.9,
    names.LEARNING_WIN_RATE_LOWER: 0.8,
    names.LEARNING_WIN_RATE_UPPER: 0.95,
}
EVAL = {names.EVAL_WIN_RATE: 0.6, names.EVAL_WIN_RATE_LOWER: 0.55, names.EVAL_WIN_RATE_UPPER: 0.65}
HANDFUL = {names.LESSON_WIN_RATE: 1.0, names.LESSON_EPISODES: 3.0}


@pytest.mark.parametrize(
    ("metrics", "listed"),
    [
        ({**LEARNING, **EVAL, **HANDFUL}, (0.6, "eval/win_rate")),
        ({**LEARNING, **EVAL, names.LEARNING_WIN_RATE_LOWER: 0.89}, (0.9, "learning/win_rate")),
        ({**LEARNING, names.EVAL_WIN_RATE: nan}, (0.9, "learning/win_rate")),
        (HANDFUL, None),  # of a lesson's episodes
    ],
)
def test_a_listed_win_rate_is_the_one_with_the_narrowest_interval(metrics, listed):
    found = replace(RUN, metrics=metrics).win_rate
    assert (found and (found.value, found.measure)) == listed


def test_the_list_and_its_top_say_what_each_win_rate_is_of(data_folder):
    def run(*words):
        return CliRunner().invoke(runs_command, [*words, "--data-dir", str(data_folder.root)])

    for name, metrics in (("three", HANDFUL), ("two", LEARNING), ("one", {**EVAL, **HANDFUL})):
        tracker = open_run(data_folder, TrackingSettings(), RunDescription(name))
        tracker.log_metrics(1, metrics)
        tracker.finish("FINISHED")
        if name == "three":
            assert run("--top", "3").stderr.startswith("none of these runs has a win rate")
            assert "no run matches" in run("--top", "3", "--filter", "name=x").stderr
    listed = run().stdout.splitlines()
    assert [line.split()[-3::2] for line in listed[1:3]] == [["60.0", "eval"], ["90.0", "learning"]]
    assert listed[3].split()[-2:] == ["-", "-"]
    assert [line.split()[1] for line in run("--top", "3").stdout.splitlines()[1:]] == ["two", "one"]


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
        texts={"evaluation/last.json": "{}", "top.txt": "first"},
        files={"video/clip.gif": tmp_path / "clip.gif"},
    )
    add_to_run(data_folder, run_id, addition)
    add_to_run(data_folder, run_id, Addition(texts={"top.txt": "é"}))
    run = find_run(data_folder, run_id)
    assert (run.status, run.tags["lab.lesson"]) == ("FAILED", "second")
    points = metric_history(data_folder, run_id, key="eval/win_rate")
    assert [(point.step, point.value) for point in points] == [(5, 0.25), (9, 0.75)]
    names = ["evaluation/last.json", "top.txt", "video/clip.gif"]
    found = [download_artifact(data_folder, run_id, name=name).read_bytes() for name in names]
    assert found == [b"{}", "é".encode(), b"GIF"]


def test_deletion_reaches_no_files_but_those_of_its_run_and_data_folder(
    data_folder, run_id, tmp_path
):
    add_to_run(data_folder, run_id, Addition(texts={"a.txt": "x"}))
    copy = DataFolder(tmp_path / "copy")
    shutil.copytree(data_folder.root, copy.root)
    (found,) = list_runs(copy)
    with pytest.raises(StoreError, match=r"outside this data folder, which may be a copy"):
        delete_run(found, copy)
    (tmp_path / "mine").mkdir()
    with closing(sqlite3.connect(copy.database)) as database, database:  # as others may write it
        database.execute("UPDATE runs SET artifact_uri = ?", ((tmp_path / "mine").as_uri(),))
    with pytest.raises(StoreError, match=r"mine, which is not a folder of that run"):
        delete_run(found, copy)
    assert (tmp_path / "mine").exists()
    assert download_artifact(data_folder, run_id, name="a.txt").read_text() == "x"
    delete_run(found, data_folder)
    assert list_runs(data_folder) == []
    assert not (data_folder.artifacts / run_id / "artifacts").exists()


def test_a_data_folder_that_was_moved_has_its_files_and_takes_new_ones(
    data_folder, run_id, tmp_path
):
    add_to_run(data_folder, run_id, Addition(texts={"a.txt": "x"}))
    moved = DataFolder(tmp_path / "moved ü")
    data_folder.root.rename(moved.root)
    assert download_artifact(moved, run_id, name="a.txt").read_text() == "x"
    add_to_run(moved, run_id, Addition(texts={"b.txt": "y"}))
    tracker = open_run(moved, TrackingSettings(), RunDescription("after"))
    tracker.log_text("z", "c.txt")
    tracker.finish("FINISHED")
    found = {path.name for path in moved.artifacts.rglob("*.txt")}
    assert (found, data_folder.root.exists()) == ({"a.txt", "b.txt", "c.txt"}, False)
    delete_run(find_run(moved, run_id), moved)
    assert {path.name for path in moved.artifacts.rglob("*.txt")} == {"c.txt"}


def test_a_run_or_artifact_that_is_not_there_is_one_line(data_folder, run_id):
    with pytest.raises(StoreError, match="0123"):
        add_to_run(data_folder, "0123", Addition(tags={"a": "b"}))
    for asked, named in ("0123", "0123"), (run_id, r"agent\.zip"):
        with pytest.raises(StoreError, match=named) as caught:
            download_artifact(data_folder, asked, name="agent.zip")
        assert "\n" not in str(caught.value)


def test_no_file_leaves_the_runs_folder(data_folder, run_id):
    for name in ("/etc/passwd", "a/../../b"):
        with pytest.raises(ValueError, match="is not an artifact name"):
            add_to_run(data_folder, run_id, Addition(texts={name: "x"}))
    with pytest.raises(ConfigurationError):
        download_artifact(data_folder, "0123", name="../../mlflow.db")

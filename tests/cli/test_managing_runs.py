"""Runs are tagged, found, listed and deleted, also those that trained nothing."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import invoke, train, write

from aimbot_lab.experiment.analysis.learning_curve import read_curves
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking import history, mlflow_store
from aimbot_lab.tracking.data_folder import DataFolder, StoreRefusedError
from aimbot_lab.tracking.history import find_run, list_own_trainings, list_runs
from aimbot_lab.tracking.journal_tracker import RunDescription, open_run
from aimbot_lab.tracking.run_folder import create_run_folder, running_run, this_process, write_owner
from aimbot_lab.tracking.settings import TrackingSettings
from aimbot_lab.tracking.tracker import NOTE_TAG, PARENT, RunSummary, parse_filter, run_filter


def summary(name: str, **tags: str) -> RunSummary:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return RunSummary(name, name, "walks", "1", "FAILED", now, now, {}, tags)


RUNS = [summary("walker one", why="baseline"), summary("walker two"), summary("shooter", why="b")]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ([], ["walker one", "walker two", "shooter"]),
        (["name=walker*"], ["walker one", "walker two"]),
        (["why=*"], ["walker one", "shooter"]),
        (["why=b*", "name=walker*"], ["walker one"]),
        (["status=failed"], ["walker one", "walker two", "shooter"]),
        (["experiment=runs"], []),
    ],
)
def test_a_filter_takes_what_has_all_of_it(filters: list[str], names: list[str]) -> None:
    takes = run_filter(filters, with_trials=False).takes
    assert [run.name for run in RUNS if takes(run)] == names


def test_what_is_no_filter_is_told_and_trials_are_shown_where_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="must be KEY=VALUE"):
        parse_filter("name=")
    trial = replace(summary("trial"), tags={PARENT: "x"})
    assert [run_filter([], with_trials=one).takes(trial) for one in (False, True)] == [False, True]


def opened(data: Path, name: str, **tags: str) -> str:
    """The id of a finished run that trained nothing."""
    described = RunDescription(name, tags=tags)
    tracker = open_run(DataFolder(data), TrackingSettings(experiment="kept"), described)
    tracker.log_text("text", "file.txt")
    tracker.finish("FINISHED")
    return tracker.run_id


def test_latest_is_the_newest_training_whatever_sweeps_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = opened(tmp_path, "own")
    sweep = opened(tmp_path, "sweep", **{"lab.sweep": "sweep"})
    trial = opened(tmp_path, "trial", **{"lab.sweep": "sweep", PARENT: sweep})
    assert find_run(DataFolder(tmp_path), "latest").run_id == own
    told = invoke(tmp_path, "runs").output
    assert own[:12] in told
    assert sweep[:12] in told
    assert trial[:12] not in told
    assert trial[:12] in invoke(tmp_path, "runs", "--all").output

    def own_trainings() -> list[str]:
        found = list_own_trainings(DataFolder(tmp_path), max_results=1)
        return [run.run_id for run in found]

    pages = mlflow_store.MlflowStore.pages

    def of_an_old_server(store: Any, size: int, condition: str = "", **named: Any) -> Any:
        if condition:
            raise StoreRefusedError("Invalid clause(s) in filter string")
        return pages(store, size, **named)

    assert own_trainings() == [own]
    monkeypatch.setattr(mlflow_store.MlflowStore, "pages", of_an_old_server)
    assert own_trainings() == [own]


def test_runs_are_narrowed_by_experiment_status_and_filter(tmp_path: Path) -> None:
    first, second = opened(tmp_path, "first", why="a"), opened(tmp_path, "second")
    every = {first, second}
    for words, ids in (
        (("--experiment", "kept"), every),
        (("--experiment", "k*"), set()),
        (("--status", "finished"), every),
        (("--status", "killed"), set()),
        (("--filter", "why=a"), {first}),
        (("--top", 1), set()),  # neither has a win rate
    ):
        listed = invoke(tmp_path, "runs", *words, "--json").document
        assert {one["run_id"] for one in listed} == ids, words


def test_deleting_takes_the_run_its_files_and_its_checkpoints(tmp_path: Path) -> None:
    data, file = tmp_path / "data", write(tmp_path)
    short = ("--set", "train.total_steps=512")
    gone, kept = (train(data, file, "--seed", seed, *short)["run_id"] for seed in (7, 8))
    assert (data / "runs" / gone / "checkpoints").is_dir()
    refused = invoke(data, "delete", gone, wanted=130)  # nobody answers
    assert "delete them for good?" in refused.said
    assert {run.run_id for run in list_runs(DataFolder(data))} == {gone, kept}
    assert "deleted 1 run" in invoke(data, "delete", gone[:10], "--yes").output
    assert [run.run_id for run in list_runs(DataFolder(data))] == [kept]
    assert not (data / "runs" / gone).exists()
    for run_id, left in ((gone, False), (kept, True)):
        files = (data / "artifacts" / run_id).rglob("*")
        assert any(path.is_file() for path in files) is left


def test_with_a_sweep_go_the_runs_of_its_trials(tmp_path: Path) -> None:
    own = opened(tmp_path, "own")
    sweep = opened(tmp_path, "sweep", **{"lab.sweep": "s"})
    trial = opened(tmp_path, "trial", **{PARENT: sweep})
    opened(tmp_path, "seed", **{PARENT: trial})
    told = invoke(tmp_path, "delete", sweep, "--yes")
    assert "and 2 runs of the trials" in told.said
    assert [run.run_id for run in list_runs(DataFolder(tmp_path))] == [own]


def test_a_living_run_is_refused_and_nothing_is_deleted(tmp_path: Path) -> None:
    dead, living = opened(tmp_path, "dead"), opened(tmp_path, "living")
    owner = this_process("token", None)
    folder = create_run_folder(DataFolder(tmp_path), owner).named(living)
    write_owner(folder.path / "owner.json", owner)
    told = invoke(tmp_path, "delete", dead, living, "--yes", wanted=2)
    assert "is still trained" in told.said
    assert len(list_runs(DataFolder(tmp_path))) == 2
    assert running_run(DataFolder(tmp_path), "latest").run_id == living


def test_a_run_that_trains_elsewhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(find_run(DataFolder(tmp_path), opened(tmp_path, "far")), status="RUNNING")
    monkeypatch.setattr(history, "find_run", lambda *_, **__: run)
    told = invoke(tmp_path, "delete", run.run_id, "--yes", wanted=2)
    assert "may be trained elsewhere" in told.said


@pytest.mark.parametrize(
    ("tag", "reason"),
    [("why", "must be KEY=VALUE"), ("lab.seed=1", "are reserved"), ("a b?=1", "not a")],
)
def test_a_tag_that_can_not_be_is_told(tmp_path: Path, tag: str, reason: str) -> None:
    assert reason in invoke(tmp_path, "run", write(tmp_path), "--tag", tag, wanted=2).said


def test_curves_of_seeds_are_drawn_as_one(tmp_path: Path) -> None:
    data, file = tmp_path / "data", write(tmp_path)
    often = ("--set", "evaluation.every=1024", "--set", "evaluation.episodes=30")
    for seed in (1, 2):
        train(data, file, "--seed", seed, *often)
    picture = tmp_path / "curve.svg"
    invoke(data, "plot", "--filter", "experiment=tests", "-o", picture)
    assert picture.read_text(encoding="utf-8").startswith("<?xml")
    assert "must end with" in invoke(data, "plot", "latest", "-o", "curve.txt", wanted=2).said
    assert "name a run" in invoke(data, "plot", "-o", tmp_path / "a.png", wanted=2).said


COMMANDS = (
    ("explain", "{run}"),
    ("evaluate", "{run}", "--episodes", "1"),
    ("compare", "{run}", "{run}"),
    ("record", "{run}", "-o", "{folder}/film.gif"),
    ("export", "{run}", "-o", "{folder}/agent"),
)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A data folder with a sweep of two trials, the second of which has no training."""
    data = tmp_path_factory.mktemp("data")
    mark = {"lab.sweep": "small"}
    sweep = opened(data, "small", **mark)
    below = {**mark, PARENT: sweep}
    trials = [opened(data, f"small {n}", **below, **{"lab.sweep_trial": str(n)}) for n in (0, 1)]
    stage = {"lab.sweep_stage": "search", PARENT: trials[0]}
    training = opened(data, "small 0 seed 0", **mark, **stage)
    return data, {"sweep": sweep, "trial": trials[0], "empty": trials[1], "training": training}


@pytest.mark.parametrize(
    ("command", "kind"), [*((one, "sweep") for one in COMMANDS), (COMMANDS[0], "trial")]
)
def test_a_sweep_and_its_trials_name_the_trainings_below_them(
    swept: tuple[Path, dict[str, str]], tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    data, ids = swept
    words = [word.format(run=ids[kind], folder=tmp_path) for word in command]
    told = invoke(data, *words, wanted=2).said
    assert "trained nothing itself" in told
    assert f"{ids['training'][:8]} (small 0 seed 0)" in told
    assert ("a sweep's trial" in told) == (kind == "trial")
    assert len(told.splitlines()) == 1


def test_a_trial_without_trainings_says_so(swept: tuple[Path, dict[str, str]]) -> None:
    data, ids = swept
    assert "it has none yet" in invoke(data, "explain", ids["empty"], wanted=2).said


def test_a_run_that_counted_no_episode_is_explained_in_a_line(tmp_path: Path) -> None:
    env = ("env.time_limit=60", "env.goto_win_radius=0.5", "train.total_steps=512")
    words = [word for one in env for word in ("--set", one)]
    run_id = train(tmp_path, write(tmp_path), *words)["run_id"]
    told = invoke(tmp_path, "explain", run_id, wanted=1).said
    assert told.startswith(f"run {run_id[:8]} (tiny seed 7) ended before an episode was counted")
    assert len(told.splitlines()) == 1


def test_a_sweep_that_never_began_is_named_with_what_begins_it(tmp_path: Path) -> None:
    said = invoke(tmp_path / "data", "sweep", "status", "rewards", wanted=2).said
    assert said.startswith("sweep 'rewards' has not begun here (there is no file ")
    assert said.endswith("; begin it with: aimbot-lab sweep rewards")
    assert not (tmp_path / "data").exists()


def test_view_result_explain_note_and_compare_tell_one_step_and_proof(tmp_path: Path) -> None:
    file = write(tmp_path)
    easy = ("train.n_steps=128", "train.total_steps=4096", "env.goto_win_radius=25")
    words = [word for one in easy for word in ("--set", one)]
    trained = invoke(tmp_path, "run", file, "--json", *words, wanted=(0, 1))
    result, folder = trained.document, DataFolder(tmp_path)
    first = result["lessons"][0]
    step = first["ended_at_step"]
    assert (first["measure"], first["threshold"]) == ("win_rate", 0.02)
    assert first["evidence"] >= first["evidence_needed"] == pytest.approx(20)
    assert first["threshold"] <= first["lower"] < first["win_rate"] < first["upper"] == 1.0
    assert step % (16 * 128) != 0  # within a rollout, else nothing is told apart
    rate = f"win rate {100 * first['win_rate']:.1f} % [{100 * first['lower']:.1f}, 100.0] > 2 %"
    proof = (
        f"passed 'first' at step {step:,} after {first['episodes']:,} episodes: {rate}, evidence "
    )
    assert proof in trained.said
    told = invoke(tmp_path, "explain", result["run_id"]).output
    assert proof.replace("passed 'first'", "lesson 1 'first': passed") in told
    explained = invoke(tmp_path, "explain", result["run_id"], "--json").document
    assert explained["lessons"][0]["end"]["step"] == step
    run = find_run(folder, result["run_id"])
    note = run.tags[NOTE_TAG].replace("&emsp;", "")
    assert f"| {step:,} | {first['episodes']:,} | win rate > 2 % | " in note
    assert explained["lessons"][0]["report"] == first
    (curve,) = read_curves([(run, load_curriculum(file).config)], data_folder=folder)
    assert curve.lessons[0].step == step

"""`aimbot-lab sweep` from a file to tracked trials and a curriculum that runs."""

import sqlite3
from math import pi, tan
from pathlib import Path
from typing import Any

import pytest
from sweep_files import RACE, SWEEP, changed, write_sweep

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import wilson
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from tests.cli.tiny_runs import invoke_in

IN_AREA = "env.rewards.in_area: {type: float, low: 0.5, high: 50, log: true}"


def call(folder: Path, *words: str, wanted: int = 0) -> Any:
    return invoke_in(folder, *words, "--data-dir", "data", wanted=wanted)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "sweeps").mkdir()
    also = ("{best: 1,", "{best: 1, also: {greedy: {env.rewards.in_area: 50}},")
    short = ("trials: 3", "trials: 3\noverrides: {train.total_steps: 512}")
    write_sweep(folder / "sweeps", changed(SWEEP, also, short)).rename(
        folder / "sweeps" / "small.yaml"
    )
    return folder


@pytest.fixture(scope="module")
def swept(folder: Path) -> dict[str, Any]:
    """The JSON document of a sweep that is done."""
    words = ("sweep", "small", "--json", "--workers", "1", "--tag", "why=weights")
    return dict(call(folder, *words).document)


def test_every_trial_has_a_value_from_each_seed(swept: dict[str, Any]) -> None:
    assert swept["status"] == "done"
    assert [trial["state"] for trial in swept["trials"]] == ["done"] * 3
    seeds = [[score["seed"] for score in trial["trainings"]] for trial in swept["trials"]]
    assert seeds == [seeds[0]] * 3
    assert len(set(seeds[0])) == len(seeds[0]) == 2
    for trial in swept["trials"]:
        values = [score["value"] for score in trial["trainings"]]
        assert trial["value"] == sum(values) / 2
        # t with one degree of freedom is Cauchy's: its 97.5 % quantile is tan(0.475 pi).
        half = tan(0.475 * pi) * abs(values[0] - values[1]) / 2
        ends = max(trial["value"] - half, 0.0), min(trial["value"] + half, 1.0)
        if values[0] == values[1]:  # which says nothing of how much trainings vary
            wins, played = (sum(s[key] for s in trial["trainings"]) for key in ("wins", "episodes"))
            _, *ends = wilson(wins, played)
        assert (trial["lower"], trial["upper"]) == pytest.approx(tuple(ends))
    assert swept["trials"][0]["params"]["env.rewards.in_area"] == 5.0


def test_the_best_is_scored_again_on_seeds_that_no_trial_has_seen(swept: dict[str, Any]) -> None:
    searched = {score["seed"] for trial in swept["trials"] for score in trial["trainings"]}
    fresh = {score["seed"] for one in swept["confirmed"] for score in one["trainings"]}
    assert len(fresh) == 2
    assert not searched & fresh
    assert any(one["is_default"] for one in swept["confirmed"])
    for one in swept["confirmed"]:
        if one["number"] is not None:
            assert one["searched"] == swept["trials"][one["number"]]["value"]


def test_named_values_are_confirmed_beside_the_best_and_never_win(swept: dict[str, Any]) -> None:
    (greedy,) = (one for one in swept["confirmed"] if one["name"] == "greedy")
    assert greedy["params"] == {"env.rewards.spin_penalty": 1.0, "env.rewards.in_area": 50.0}
    assert (greedy["number"], greedy["searched"]) == (None, None)
    assert greedy["gain"] is not None


def test_the_defaults_stay_the_best_unless_a_trial_is_clearly_better(swept: dict[str, Any]) -> None:
    better = [
        one["number"]
        for one in swept["confirmed"]
        if one["gain_lower"] is not None and one["gain_lower"] > 0 and one["name"] is None
    ]
    assert swept["best"] in (better or [0])
    assert ("no trial is clearly better" in swept["verdict"]) is not better


def test_the_store_holds_a_run_with_its_trials_and_their_trainings_and_its_tags(
    folder: Path, swept: dict[str, Any]
) -> None:
    runs = {run.run_id: run for run in list_runs(DataFolder(folder / "data"))}
    tags = [run.tags for run in runs.values()]
    assert {one.get("why") for one in tags if "lab.sweep" in one} == {"weights"}
    assert {one.get("lab.sweep_stage") for one in tags} >= {None, "search", "confirm"}
    values = "SELECT run_uuid, value FROM tags WHERE key = ?"
    with sqlite3.connect(folder / "data" / "mlflow.db") as store:
        parents = dict(store.execute(values, ["mlflow.parentRunId"]))
        notes = dict(store.execute(values, ["mlflow.note.content"]))
        experiments = store.execute("SELECT DISTINCT experiment_id FROM runs").fetchall()
    assert len(experiments) == 1  # MLflow nests only within one
    sweep = swept["run_id"]
    assert f"**Best: trial {swept['best']}**" in notes[sweep]
    below = [run for run, parent in parents.items() if parent == sweep]
    greedy = [run for run in below if "greedy" in runs[run].name]  # it has no trial to lie below
    trials = [run for run in below if run not in greedy]
    assert sorted(runs[run].name for run in trials) == ["small 0", "small 1", "small 2"]
    assert len(greedy) == 2
    assert {run.status for run in runs.values()} == {"FINISHED"}
    assert sorted(trial["run_id"] for trial in swept["trials"]) == sorted(trials)
    trainings = [run for run, parent in parents.items() if parent in trials]
    assert len(trainings) == 3 * 2 + (len(swept["confirmed"]) - 1) * 2


def test_the_best_values_are_a_curriculum_that_runs_as_it_is(
    folder: Path, swept: dict[str, Any]
) -> None:
    best = swept["trials"][swept["best"]]["params"]
    rewards = load_curriculum(swept["best_file"]).config.env.rewards
    assert rewards.spin_penalty == best["env.rewards.spin_penalty"]
    assert rewards.in_area == best["env.rewards.in_area"]
    call(folder, "run", swept["best_file"])


def test_a_trial_gives_the_same_value_again_to_the_last_bit(
    folder: Path, swept: dict[str, Any]
) -> None:
    document = call(folder, "sweep", "rerun", "small", "1", "--json").document
    assert document["same"] is True
    assert document["now"] == swept["trials"][1]["value"]


def test_a_finished_sweep_is_told_not_run_again(folder: Path, swept: dict[str, Any]) -> None:
    status = call(folder, "sweep", "status", "small")
    assert "3 of 3 trials ended, done" in status.output
    report = call(folder, "sweep", "report", "small")
    assert "on fresh seeds" in report.output
    assert report.output.splitlines()[-1] == swept["verdict"]
    again = call(folder, "sweep", "small", "--resume", "--json")
    assert again.document["trials"] == swept["trials"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("sweep", "status", "none"), "sweep 'none' has not begun"),
        (("sweep", "rerun", "small", "9"), "has no trial 9; its trials are 0 to 2"),
        (("sweep", "small"), "resume it with --resume"),
        (("sweep", "power", "small"), "does not count steps_to_goal"),
    ],
)
def test_what_is_not_there_is_told_in_a_line(
    folder: Path, swept: dict[str, Any], arguments: tuple[str, ...], told: str
) -> None:
    (line,) = call(folder, *arguments, wanted=2).said.splitlines()
    assert told in line


@pytest.mark.campaign
def test_a_race_is_the_same_whatever_the_number_of_workers(tmp_path: Path) -> None:
    """A margin of 0 gives up whatever has fallen behind the best trial."""
    ended = []
    for workers in ("1", "2"):
        folder = tmp_path / workers
        folder.mkdir()
        strict = ("margin: 0.5", "margin: 0"), ("parallel: 1", "parallel: 2")
        hard = "env.goto_win_radius: {type: float, low: 4, high: 20}"
        write_sweep(folder, changed(RACE, *strict, (IN_AREA, hard), ("trials: 3", "trials: 6")))
        words = ("sweep", "sweep.yaml", "--json", "--workers", workers)
        found = call(folder, *words).document["trials"]
        worth = [(t["state"], t["params"], t["value"], t["at_least"]) for t in found]
        learned = [[score["state_sha256"] for score in t["trainings"]] for t in found]
        ended.append((worth, learned))
    assert ended[0] == ended[1]
    assert "given up" in {state for state, *_ in ended[0][0]}

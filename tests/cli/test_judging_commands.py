"""`compare`, `record` and `export` on a run: what they say, and what the run keeps of it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny_runs import invoke, invoke_plainly

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import agents
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, find_run
from aimbot_lab.tracking.tracker import NOTE_TAG
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.run_hooks import SilentObserver

CURRICULUM = """
name: tiny
seed: 7
env: {{num_envs: 16, goto_win_radius: 12.0, time_limit: 1.0}}
lessons:
  - name: only
    targets: {{goto: 1, free: 1}}
    difficulty: {{goto: [1, 1, 0, 0, 0]}}
train:
  algo: {algo}
  total_steps: 1_024
  n_steps: 32
  batch_size: 512
  n_epochs: 1
  network: {{layers: [8]}}
  torch_threads: 1
tracking: {{experiment: tests}}
"""
Learned = Callable[[str], str]


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    return DataFolder(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def learned(data_folder: DataFolder, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    """Gives the id of a run of an algorithm, too short to learn anything."""
    folder, runs = tmp_path_factory.mktemp("curricula"), dict[str, str]()

    def run_of(algo: str) -> str:
        if algo not in runs:
            file = folder / f"{algo}.yaml"
            file.write_text(CURRICULUM.format(algo=algo), encoding="utf-8")
            request = RunRequest(load_curriculum(file, ()), data_folder)
            ended = run_curriculum(request, SilentObserver(), should_stop=lambda: False)
            runs[algo] = ended.run_id
        return runs[algo]

    return run_of


@pytest.fixture
def run_id(learned: Learned, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return learned("ppo")


def refused(data_folder: DataFolder, *words: Any, wanted: int = 2) -> str:
    return str(invoke(data_folder.root, *words, wanted=wanted).said)


def note_of(data_folder: DataFolder, run_id: str) -> str:
    return find_run(data_folder, run_id).tags[NOTE_TAG]


def test_a_run_compared_with_itself_differs_in_nothing_and_keeps_what_was_printed(
    data_folder: DataFolder, run_id: str
) -> None:
    words = ("compare", run_id, run_id, "--episodes", 2, "--json")
    document = invoke(data_folder.root, *words).document
    assert document["settings"] == {}
    (rows,) = document["differences"]
    assert len(rows) == 4
    assert {row["verdict"] for row in rows} <= {"alike", "unclear"}
    name = f"comparisons/{run_id[:8]}"
    kept = download_artifact(data_folder, run_id, name=f"{name}.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == document
    page = download_artifact(data_folder, run_id, name=f"{name}.html")
    assert page.read_text() == (data_folder.root / f"{name}.html").read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["compare", "no run"], "at least two runs"),
        (["compare", "no run", "no run", "-o", "nowhere/page.html"], "no such folder"),
        (["record", "gone.json", "-o", "film.gif"], "gone.json: no such replay"),
        (["compare", "a", "b", "-o", "page.html", "--margin", "nan"], "nan is not a number"),
        (["record", "a", "b", "-o", "film.gif", "--speed", "nan"], "nan is not a number"),
    ],
)
def test_a_fault_of_the_command_line_is_told_before_the_run_is_looked_for(
    data_folder: DataFolder, words: list[str], reason: str
) -> None:
    assert reason in refused(data_folder, *words)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("RUNNING", "it still trains"),
        ("KILLED", "aimbot-lab resume"),
        ("FAILED", "No such artifact"),
    ],
)
def test_a_run_without_an_agent_is_told_from_a_store_that_fails(
    data_folder: DataFolder, run_id: str, status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(find_run(data_folder, run_id), status=status)
    monkeypatch.setattr(agents, "find_training", lambda *_, **__: run)
    monkeypatch.setattr(agents, "AGENT_FOLDER", "none")
    said = refused(data_folder, "evaluate", run_id, "--agent", "best", wanted=1)
    assert f"{run_id} has no best agent that can be read: " in said
    assert reason in said


def test_a_film_is_kept_by_the_run_and_linked_in_its_note(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    before = note_of(data_folder, run_id)
    film = tmp_path / "my film.gif"
    for words in (["--episodes", 1], ["--target", "goto", "--grid", "2x1"]):
        invoke(data_folder.root, "record", run_id, "-o", film, "--size", 120, *words)
    kept = download_artifact(data_folder, run_id, name="videos/my-film.gif")
    assert kept.read_bytes() == film.read_bytes()
    note = note_of(data_folder, run_id)
    assert note.startswith(before)
    link = f"/runs/{run_id}/artifacts/videos/my-film.gif?workflowType=machine_learning)"
    assert note.count(link) == 1  # the second film took the place of the first
    assert re.search(r"last agent, saved at step 1,024; won \d of 2 episodes, sampled", note)


def test_a_target_alone_is_filmed_once_in_each_of_its_difficulties(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    film = tmp_path / "film.gif"
    invoke(data_folder.root, "record", run_id, "-o", film, "--size", 120, "--target", "free")
    with Image.open(film) as found:
        assert found.n_frames <= 11 + 15  # of one episode of a second, and its end
    said = refused(data_folder, "record", run_id, "-o", film, "--target", "attack")
    assert "no such cell; it has goto 1, goto 2, free" in said


def test_one_episode_is_kept_as_a_replay_that_plays(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    path = tmp_path / "episode.json"
    invoke(data_folder.root, "record", run_id, "-o", path, "--difficulty", 2)
    document = invoke_plainly("replay", path, "--json").document
    assert (document["target"], document["difficulty"]) == ("goto", 2)
    assert document["about"]["run"] == run_id


def test_whatever_shows_an_agent_says_how_its_actions_are_drawn(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    words, temperature, label = ("--temperature", 0.25), 0.25, "temperature 0.25"
    shown = ("--episodes", 2, "--json", *words)
    evaluated = invoke(data_folder.root, "evaluate", run_id, *shown).document
    ways = [label, "sampled", "temperature 0.5", "likeliest action", "random", "greedy"]
    assert list(evaluated["players"]) == ways
    assert (evaluated["temperature"], evaluated["advised"]) == (temperature, 1)
    assert find_run(data_folder, run_id).metrics[names.TEST_TEMPERATURE] == temperature
    compared = invoke(data_folder.root, "compare", run_id, run_id, *shown).document
    assert [run["temperature"] for run in compared["runs"]] == [temperature] * 2
    replay = tmp_path / "episode.json"
    invoke(data_folder.root, "record", run_id, "-o", replay, *words)
    about = json.loads(replay.read_text())["about"]
    assert (about["temperature"], about["player"]) == (temperature, label)


@pytest.mark.parametrize("command", ["evaluate", "record"])
def test_a_temperature_that_an_agent_can_not_play_at_is_refused(
    learned: Learned, data_folder: DataFolder, tmp_path: Path, command: str
) -> None:
    output = ["-o", tmp_path / "out.gif"] if command == "record" else []
    words = (data_folder, command, learned("dqn"), *output, "--temperature")
    assert "an agent of dqn ranks actions" in refused(*words, 0.5)
    assert "must be 0 (the likeliest action) or from 0.01 to 10" in refused(*words, 11)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_is_exported_as_a_folder_that_loads(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    invoke(data_folder.root, "export", run_id, "-o", tmp_path / "agent")
    assert load_agent(tmp_path / "agent").about["step"] == 1024

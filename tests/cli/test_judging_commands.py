"""`compare`, `record` and `export` on a run: what they say, and what the run keeps of it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from PIL import Image

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import agents
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError, LabError
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


def invoke(data_folder: DataFolder, *words: Any) -> Any:
    arguments = [*map(str, words), "--data-dir", str(data_folder.root)]
    result = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def note_of(data_folder: DataFolder, run_id: str) -> str:
    return find_run(data_folder, run_id).tags[NOTE_TAG]


def test_a_run_compared_with_itself_differs_in_nothing_and_keeps_what_was_printed(
    data_folder: DataFolder, run_id: str
) -> None:
    result = invoke(data_folder, "compare", run_id, run_id, "--episodes", 2, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["settings"] == {}
    (rows,) = document["differences"]
    assert len(rows) == 4
    assert {row["verdict"] for row in rows} <= {"alike", "unclear"}
    name = f"comparisons/{run_id[:8]}"
    kept = download_artifact(data_folder, run_id, name=f"{name}.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == document
    page = download_artifact(data_folder, run_id, name=f"{name}.html")
    assert page.read_text() == (data_folder.root / f"{name}.html").read_text()


def test_one_run_alone_can_not_be_compared(run_id: str, data_folder: DataFolder) -> None:
    words = ["compare", run_id, "--data-dir", str(data_folder.root)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "at least two runs" in result.output


@pytest.mark.parametrize(
    ("command", "output", "reason"),
    [
        ("compare", "nowhere/page.html", "no such folder"),
        ("record", "film.gif", r"gone\.json: no such replay"),
    ],
)
def test_a_fault_of_the_command_line_is_told_before_the_run_is_looked_for(
    data_folder: DataFolder, command: str, output: str, reason: str
) -> None:
    sources = ["no run", "no run"] if command == "compare" else ["gone.json"]
    with pytest.raises(ConfigurationError, match=reason):
        invoke(data_folder, command, *sources, "-o", output)


@pytest.mark.parametrize("words", [("compare", "--margin"), ("record", "--speed")])
def test_nan_is_on_no_side_of_a_bound(words: tuple[str, str]) -> None:
    command, option = words
    result = CliRunner().invoke(cli, [command, "a", "b", "-o", "film.gif", option, "nan"])
    assert result.exit_code == 2
    assert "nan is not a number" in result.output


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
    with pytest.raises(LabError, match=f"{run_id} has no best agent that can be read: .*{reason}"):
        invoke(data_folder, "evaluate", run_id, "--agent", "best")


def test_a_film_is_kept_by_the_run_and_linked_in_its_note(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    before = note_of(data_folder, run_id)
    film = tmp_path / "my film.gif"
    for words in (["--episodes", 1], ["--target", "goto", "--grid", "2x1"]):
        invoke(data_folder, "record", run_id, "-o", film, "--size", 120, *words)
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
    invoke(data_folder, "record", run_id, "-o", film, "--size", 120, "--target", "free")
    with Image.open(film) as found:
        assert found.n_frames <= 11 + 15  # of one episode of a second, and its end
    with pytest.raises(ConfigurationError, match="no such cell; it has goto 1, goto 2, free"):
        invoke(data_folder, "record", run_id, "-o", film, "--target", "attack")


def test_one_episode_is_kept_as_a_replay_that_plays(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    path = tmp_path / "episode.json"
    invoke(data_folder, "record", run_id, "-o", path, "--difficulty", 2)
    told = CliRunner().invoke(cli, ["replay", str(path), "--json"], standalone_mode=False)
    document = json.loads(told.stdout)
    assert (document["target"], document["difficulty"]) == ("goto", 2)
    assert document["about"]["run"] == run_id


@pytest.mark.parametrize(
    ("words", "temperature", "label"),
    [(["--temperature", 0.25], 0.25, "temperature 0.25")],
    ids=str,
)
def test_whatever_shows_an_agent_says_how_its_actions_are_drawn(
    data_folder: DataFolder,
    run_id: str,
    tmp_path: Path,
    words: list[Any],
    temperature: float,
    label: str,
) -> None:
    shown = ["--episodes", 2, "--json", *words]
    evaluated = json.loads(invoke(data_folder, "evaluate", run_id, *shown).stdout)
    ways = dict.fromkeys(
        [label, "sampled", "temperature 0.5", "likeliest action", "random", "greedy"]
    )
    assert list(evaluated["players"]) == list(ways)
    assert (evaluated["temperature"], evaluated["advised"]) == (temperature, 1)
    assert find_run(data_folder, run_id).metrics[names.TEST_TEMPERATURE] == temperature
    compared = json.loads(invoke(data_folder, "compare", run_id, run_id, *shown).stdout)
    assert [run["temperature"] for run in compared["runs"]] == [temperature] * 2
    replay = tmp_path / "episode.json"
    invoke(data_folder, "record", run_id, "-o", replay, *words)
    about = json.loads(replay.read_text())["about"]
    assert (about["temperature"], about["player"]) == (temperature, label)


@pytest.mark.parametrize("command", ["evaluate", "record"])
def test_a_temperature_that_an_agent_can_not_play_at_is_refused(
    learned: Learned, data_folder: DataFolder, tmp_path: Path, command: str
) -> None:
    run = learned("dqn")
    output = ["-o", tmp_path / "out.gif"] if command == "record" else []
    with pytest.raises(ConfigurationError, match="an agent of dqn ranks actions"):
        invoke(data_folder, command, run, *output, "--temperature", 0.5)
    result = CliRunner().invoke(cli, [command, run, *map(str, output), "--temperature", "11"])
    assert result.exit_code == 2
    assert "must be 0 (the likeliest action) or from 0.01 to 10" in result.output
    assert list(tmp_path.iterdir()) == []


def test_an_agent_is_exported_as_a_folder_that_loads(
    data_folder: DataFolder, run_id: str, tmp_path: Path
) -> None:
    invoke(data_folder, "export", run_id, "-o", tmp_path / "agent")
    assert load_agent(tmp_path / "agent").about["step"] == 1024

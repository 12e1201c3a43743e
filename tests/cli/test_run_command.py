"""`aimbot-lab run` from a file to a tracked run, as a user calls it."""

import json
from pathlib import Path
from typing import Any

import pytest
from terminal_session import TerminalSession
from tiny_runs import environment, invoke_in

from aimbot_lab.cli.stopping import STOPPING
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, find_run, list_runs
from aimbot_lab.worlds.arena.settings import RewardWeights

CURRICULUM = """
name: tiny
seed: 7
env: {num_envs: 32, goto_win_radius: 12.0, time_limit: 5.0}
lessons:
  - name: first
    targets: {goto: 1}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: {threshold: 0.02, min_lesson_length: 10}
  - name: second
    targets: {goto: 1}
    completion_criteria: {threshold: 0.02, min_lesson_length: 10}
train:
  total_steps: 200_000
  n_steps: 32
  batch_size: 512
  n_epochs: 2
  network: {layers: [16]}
  torch_threads: 1
tracking: {experiment: tests}
evaluation: {every: 2000, episodes: 30}
"""
CURRICULA_PAGE = Path(__file__).parents[2] / "curricula" / "README.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a curriculum, and a data folder that all tests of this module share."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tiny.yaml").write_text(CURRICULUM, encoding="utf-8")
    (folder / ".aimbot-lab").mkdir()
    return folder


def statuses(folder: Path) -> dict[str, str]:
    return {run.run_id: run.status for run in list_runs(DataFolder(folder / ".aimbot-lab"))}


@pytest.fixture(scope="module")
def finished(folder: Path) -> dict[str, Any]:
    told = invoke_in(folder, "run", "tiny.yaml", "--json", "--name", "one")
    document: dict[str, Any] = told.document
    return document


def test_the_document_tells_the_whole_run(finished: dict[str, Any]) -> None:
    wanted = {"status": "FINISHED", "resumes_at": None, "seed": 7}
    assert wanted.items() <= finished.items()
    assert finished["steps"] > 0
    speed = finished["steps"] / finished["seconds"]
    assert finished["steps_per_second"] == pytest.approx(speed, rel=1e-6)
    assert len(finished["state_sha256"]) == 64
    assert [lesson["name"] for lesson in finished["lessons"]] == ["first", "second"]
    for part in (*finished["lessons"], *finished["cells"]):
        assert part["lower"] <= part["win_rate"] <= part["upper"]
    assert {"ended_at_step", "episodes"} <= set(finished["lessons"][0])
    assert [cell["difficulty"] for cell in finished["cells"]] == [1, 2, 3, 4, 5]
    assert all(cell["target"] == "goto" for cell in finished["cells"])


def test_the_store_holds_the_run_with_its_metrics_and_files(finished: dict[str, Any]) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(finished["tracking_uri"])
    run = client.get_run(finished["run_id"])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "one")
    assert run.info.experiment_id == finished["experiment_id"]
    assert run.data.params["seed"] == "7"
    assert "| lesson&emsp; |" in run.data.tags["mlflow.note.content"]
    tags = {"curriculum": "tiny", "lessons_passed": "2 of 2", "lesson": "second"}
    tags["ended"] = "goal reached"
    assert {f"lab.{key}": value for key, value in tags.items()}.items() <= run.data.tags.items()
    wanted = {
        names.LESSON_NUMBER,
        names.EPISODE_LENGTH,
        names.STEPS_PER_SECOND,
        "train/loss",
        "eval/win_rate",
        "eval/win_rate_lower",
        "eval/win_rate_upper",
        *(f"eval/win_rate/goto/{level}" for level in (1, 2, 3, 4, 5)),
        *(names.reward_term(term) for term in RewardWeights.__dataclass_fields__),
    }
    assert wanted <= set(run.data.metrics)
    history = client.get_metric_history(finished["run_id"], names.LESSON_NUMBER)
    assert [point.step for point in history] == sorted({point.step for point in history})
    assert history[-1].step == finished["steps"]
    files = {file.path for file in client.list_artifacts(finished["run_id"])}
    assert {"curriculum.yaml", "resolved.yaml", "agent"} <= files


def test_runs_lists_it_and_its_agent_can_be_evaluated(
    folder: Path, finished: dict[str, Any]
) -> None:
    shown = invoke_in(folder, "runs", "--json").document
    assert finished["run_id"] in {run["run_id"] for run in shown}
    arguments = ["--episodes", "4", "--seed", "5", "--json"]
    document = invoke_in(folder, "evaluate", finished["run_id"][:12], *arguments).document
    ways = ["sampled", "temperature 0.5", "likeliest action", "random", "greedy"]
    assert list(document["players"]) == ways
    for scores in document["players"].values():
        assert [cell["episodes"] for cell in scores["cells"]] == [4] * 5
        assert scores["overall"]["wins"] == sum(cell["wins"] for cell in scores["cells"])
    again = invoke_in(folder, "evaluate", "latest", *arguments, "--no-baselines").document
    assert list(again["players"].items()) == [*document["players"].items()][:3]
    kept = find_run(DataFolder(folder / ".aimbot-lab"), finished["run_id"])
    sampled = document["players"]["sampled"]["overall"]
    assert kept.metrics[names.TEST_WIN_RATE] == sampled["win_rate"]
    assert kept.status == "FINISHED"
    assert kept.tags["mlflow.note.content"].count("### Evaluation") == 1


def test_compare_takes_the_mean_while_learning_from_the_evaluations(
    folder: Path, finished: dict[str, Any]
) -> None:
    story = CURRICULA_PAGE.read_text(encoding="utf-8").partition("**The curve.**")[2]
    line = story.partition("```yaml\n")[2].partition("\n")[0]
    assert line.startswith("evaluation: {every: 500_000, episodes: 50}")
    assert "aimbot-lab compare RUN RUN" in story
    setting = ("--set", "evaluation.every=500_000", "--set", "evaluation.episodes=50")
    setting += ("--set", "train.total_steps=2048")
    other = invoke_in(folder, "run", "tiny.yaml", "--seed", "8", "--json", *setting, wanted=(0, 1))
    words = ("compare", finished["run_id"], other.document["run_id"], "--episodes", "4", "--json")
    found = invoke_in(folder, *words).document
    assert all(run["mean_win_rate"] is not None for run in found["runs"])
    (page,) = (folder / ".aimbot-lab" / "comparisons").glob("*.html")
    assert "eval/win_rate (the same episodes at every step)" in page.read_text(encoding="utf-8")


def test_spent_steps_are_a_failed_run_that_names_the_weak_cell(folder: Path) -> None:
    told = invoke_in(
        folder,
        *("run", "tiny.yaml", "--json", "--set", "train.total_steps=2048"),
        *("--set", "lessons.0.completion_criteria.threshold=0.99", "--seed", "3"),
        wanted=1,
    )
    document = told.document
    assert document["status"] == "FAILED"
    assert document["seed"] == 3
    assert document["lessons"][-1]["ended_at_step"] is None
    assert "held back by goto 1" in told.said
    assert statuses(folder)[document["run_id"]] == "FAILED"


ENDLESS = (
    *("run", "tiny.yaml", "--json", "--set", "train.total_steps=500000000"),
    *("--set", "lessons.0.completion_criteria.threshold=0.999"),
)


def test_ctrl_c_on_a_terminal_is_acknowledged_in_the_live_table_and_saves(folder: Path) -> None:
    given = {**environment(), "TERM": "xterm"}
    given.pop("NO_COLOR", None)
    with TerminalSession("-m", "aimbot_lab", *ENDLESS, cwd=folder, env=given) as session:
        flags = session.flags()
        session.read_until("episodes")
        session.press("\x03")
        session.read_until(STOPPING)
        code, output = session.finish()
        assert session.flags() == flags
    assert not [text for text in ("^C", "Traceback") if text in session.shown]
    document = json.loads(output)
    run_id = document["run_id"]
    assert (code, document["status"], statuses(folder)[run_id]) == (130, "KILLED", "KILLED")
    saved = download_artifact(DataFolder(folder / ".aimbot-lab"), run_id, name="agent/last")
    assert (saved / "agent.safetensors").is_file()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["missing.yaml"], "missing.yaml"),
        (["tiny.yaml", "--set", "train.total_stepz=1"], "total_steps"),
        (["tiny.yaml", "--seed", "-1"], "--seed"),
        (["tiny.yaml", "--data-dir", "tiny.yaml"], "is a file"),
        (["tiny.yaml", "--tracking-uri", "nonsense://x"], "nonsense"),
    ],
)
def test_a_mistake_is_one_message_exit_code_2_and_no_run(
    folder: Path, finished: dict[str, Any], arguments: list[str], wanted: str
) -> None:
    before = statuses(folder)
    told = invoke_in(folder, "run", *arguments, wanted=2)
    assert wanted in told.said
    assert told.output == ""
    assert statuses(folder) == before


def test_a_finished_run_is_not_resumed_and_one_that_is_not_there_not_evaluated(
    folder: Path, finished: dict[str, Any]
) -> None:
    run_id = finished["run_id"]
    said = invoke_in(folder, "resume", run_id, wanted=2).said.strip()
    assert said == f"run {run_id} is finished: there is nothing left to do"
    (line,) = invoke_in(folder, "evaluate", "nothing-like-this", wanted=2).said.splitlines()
    assert "aimbot-lab runs" in line

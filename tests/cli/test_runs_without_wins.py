"""A curriculum without lessons, in an environment without a rule for what counts as won."""

import json
from pathlib import Path

import pytest
from tiny_runs import invoke, invoke_plainly, write

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs

FREE = """
name: free
env: {world: gymnasium, id: CartPole-v1, num_envs: 4}
train: {algo: ppo, total_steps: 512, n_steps: 32, batch_size: 64, network: {layers: [4]}}
evaluation: {every: 256, episodes: 30}
"""
JUDGED = "lessons: [{name: one, completion_criteria: {MEASURE, threshold: 0.5}}]\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("free")
    told = invoke(folder, "run", write(folder, text=FREE), wanted=0)
    assert "FINISHED" in told.output
    assert "mean return" in told.output
    assert "win" not in told.output.replace("window", "")
    assert "explain" not in told.output  # which has nothing to say without lessons
    return folder


def test_a_run_tracks_mean_returns_in_the_place_of_win_rates(data: Path) -> None:
    (run,) = list_runs(DataFolder(data))
    assert not [name for name in run.metrics if "win_rate" in name]
    assert run.metrics[names.EPISODE_RETURN] >= 8
    assert run.metrics[names.EVAL_RETURN] >= 8
    note = run.tags["mlflow.note.content"]
    assert "mean return" in note
    assert "win rate |" not in note
    shown = f"return {run.metrics[names.EVAL_RETURN]:.4g}  eval"
    assert invoke(data, "runs").output.splitlines()[-1].rstrip().endswith(shown)


def test_an_evaluation_tells_mean_returns_with_their_intervals(data: Path) -> None:
    output = invoke(data, "evaluate", "latest", "--episodes", 5).output
    assert "return [95 %]" in output
    assert "win" not in output
    arguments = ("evaluate", "latest", "--episodes", 5, "--no-baselines", "--json")
    document = json.loads(invoke(data, *arguments).output)
    overall = document["players"]["sampled"]["overall"]
    assert overall["measures"]["return"] == overall["mean_return"]
    assert "win_rate" not in overall
    (run,) = list_runs(DataFolder(data))
    assert run.metrics[names.TEST_RETURN] == overall["mean_return"]
    assert not [name for name in run.metrics if "win_rate" in name]


def test_runs_are_compared_by_mean_returns_in_the_same_episodes(data: Path) -> None:
    other = FREE.replace("algo: ppo", "algo: a2c").replace(", batch_size: 64", "")
    done = invoke(data, "run", write(data, "other.yaml", text=other), "--json", wanted=0).document
    first = next(run for run in list_runs(DataFolder(data)) if run.run_id != done["run_id"])
    runs = (first.run_id, done["run_id"])
    found = invoke(data, "compare", *runs, "--episodes", 4, "--json").document
    (rows,) = found["differences"]
    scores = [run["scores"]["overall"] for run in found["runs"]]
    means = [score["mean_return"] for score in scores]
    assert [rows[0]["first_return"], rows[0]["second_return"]] == means
    assert rows[0]["difference"] == pytest.approx(means[1] - means[0])
    assert rows[0]["lower"] <= rows[0]["difference"] <= rows[0]["upper"]
    assert not found["unpaired"]
    assert "win_rate" not in json.dumps([found["runs"], found["differences"]])
    shown = invoke(data, "compare", *runs, "--episodes", 4)
    assert "win" not in shown.output.replace("window", "").split("Settings that differ")[0]
    assert "esson" not in shown.output
    assert [run["lessons"] for run in found["runs"]] == [[], []]
    by_seed = invoke(data, "compare", *runs, "--by", "config", "--episodes", 4, "--json").document
    values = {one["label"]: one["mean"]["value"] for one in by_seed["configurations"]}
    assert [*values.values()] == pytest.approx(means)
    less = by_seed["configurations"][1]["difference"]
    assert less == {"value": pytest.approx(means[1] - means[0]), "lower": None, "upper": None}


def test_the_curve_of_such_a_run_is_its_mean_return_and_its_lesson_is_explained(data: Path) -> None:
    picture = data / "curve.svg"
    invoke(data, "plot", "latest", "-o", picture)
    assert "mean return" in picture.read_text(encoding="utf-8")
    explained = invoke(data, "explain", "latest").output
    assert "win" not in explained.replace("window", "")
    assert "\nno lessons: ends when all steps are taken; " in explained


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            FREE + JUDGED.replace("MEASURE", "measure: score"),
            "add env.win, or measure reward or progress",
        ),
        (
            "name: a\n",
            "lessons: is missing (without env.world the arena is trained, which needs lessons)",
        ),
    ],
)
def test_a_lesson_that_is_measured_by_wins_and_none_for_several_targets_are_refused(
    tmp_path: Path, text: str, what: str
) -> None:
    assert what in invoke_plainly("check", write(tmp_path, text=text), wanted=2).said


def test_a_lesson_that_is_measured_by_rewards_ends(tmp_path: Path) -> None:
    measure = JUDGED.replace("MEASURE", "measure: reward, rule: ml-agents, min_lesson_length: 8")
    told = invoke(tmp_path, "run", write(tmp_path, text=FREE + measure), "--json", wanted=0)
    (lesson,) = told.document["lessons"]
    assert lesson["ended_at_step"]
    assert lesson["mean_return"] >= 8
    assert lesson["win_rate"] is None
    assert not told.document["has_wins"]

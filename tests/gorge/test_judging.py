"""The commands on a run in Gorge Walk: what they show of it, and what the run keeps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aimbot_lab.envs  # noqa: F401  registers the ids
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.sweep.document import load_sweep
from aimbot_lab.sweep.trial import measure
from aimbot_lab.sweep.trial_runs import TrialTraining
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run
from aimbot_lab.tracking.tracker import NOTE_TAG
from aimbot_lab.worlds.gorge.map_choice import chosen_maps
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.registry import evaluated
from tests.cli.tiny_runs import invoke, invoke_plainly, train, write
from tests.gorge.gorge_runs import write_map

CURRICULUM = """
name: judged
env: {world: gorge, num_envs: 8, max_steps: 140}
lessons:
  - name: all
    targets: {walk: 1, collect: 1, score: 1}
    difficulty: {walk: [1, 0, 0, 0, 1], collect: [1, 0, 0, 0, 0]}
    parameters: {win_share: 0.95}
    completion_criteria: {threshold: 0.99, min_lesson_length: 10_000}
evaluation: {every: 100_000, episodes: 30}
train: {algo: hybrid_ppo, total_steps: 2_048, n_steps: 64, batch_size: 512, n_epochs: 1,
  network: {layers: [4]}}
"""
SWEEP = """
name: gorge-bumps
base: judged.yaml
search: {env.rewards.bump: {type: float, low: -1, high: 0}}
objective: {measure: win_rate, episodes: 4}
trials: 2
tracking: {experiment: tests}
"""
CELLS = [("walk", 1), ("walk", 5), ("collect", 1), ("score", 0)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    train(folder, write(folder, "judged.yaml", CURRICULUM))
    return folder


@pytest.fixture(scope="module")
def found(data: Path) -> Any:
    return invoke(data, "evaluate", "latest", "--episodes", 8, "--json").document


def test_the_optimum_has_a_share_of_1_in_every_cell_and_nobody_exceeds_it(found: Any) -> None:
    names = {"score", "share", "share_lower", "share_upper", "arrived", "treasures", "placed"}
    names |= {"treasure_score", "steps", "median_steps", "bumps"}
    assert {"random", "explorer", "optimum"} < set(found["players"])
    for name, player in found["players"].items():
        cells = [(cell["target"], cell["difficulty"]) for cell in player["cells"]]
        assert sorted(cells) == sorted(CELLS)
        for score in (player["overall"], *player["cells"]):
            numbers = score["measures"]
            assert set(numbers) == names
            assert numbers["share_lower"] <= numbers["share"] <= numbers["share_upper"]
            assert numbers["share"] <= 1 + 1e-9
            if name == "optimum":
                assert numbers["share"] == pytest.approx(1, abs=1e-9)
    walk = found["players"]["optimum"]["cells"][0]["measures"]
    assert (walk["arrived"], walk["treasures"], walk["placed"], walk["bumps"]) == (1, 0, 0, 0)
    assert walk["score"] > 150


def test_tables_show_score_and_share_beside_the_win_rate(data: Path) -> None:
    head, *rows = invoke(data, "evaluate", "latest", "--episodes", 2).output.splitlines()
    run = find_run(DataFolder(data), "latest")
    assert "; share 1.000" in run.tags[NOTE_TAG]
    assert 0 <= run.metrics["test/share"] <= 1
    shown = ("score", "share of the optimum [95 %]", "arrived", "median steps", "bumps")
    assert [word in head for word in (*shown, "median to win")] == [True] * 5 + [False]
    assert any("1.000 [1.000, 1.000]" in row for row in rows)


def test_a_comparison_tells_the_difference_in_the_share_of_the_optimum(data: Path) -> None:
    words = ("compare", "latest", "latest", "--episodes", 2)
    document = invoke(data, *words, "--json").document
    (rows,) = document["differences"]
    for row in rows:
        assert row["measures"] == {"share": 0.0, "share_lower": 0.0, "share_upper": 0.0}
    output = invoke(data, *words).output
    assert "share: difference [95 %]" in output
    assert "+0.000 [+0.000, +0.000]" in output


def test_a_training_tracks_what_the_world_measures(data: Path) -> None:
    metrics = find_run(DataFolder(data), "latest").metrics
    scores = ("steps", "treasures", "treasure_score", "total", "share", "finished", "bumps")
    for name in (*(f"score/{name}" for name in scores), "eval/score", "eval/share"):
        assert np.isfinite(metrics[name]), name
    assert metrics["score/total"] >= metrics["score/treasure_score"] >= 0
    assert 0 <= metrics["eval/share"] <= 1
    assert "rollout/score" not in metrics


def test_a_run_is_recorded_filmed_explained_and_exported(data: Path, tmp_path: Path) -> None:
    words = ("--target", "collect", "--difficulty", 1)
    invoke(data, "record", "latest", "-o", tmp_path / "one.json", *words)
    summary = invoke_plainly("replay", tmp_path / "one.json", "--json").document
    assert (summary["target"], summary["difficulty"]) == ("collect", 1)
    assert summary["decisions"] <= 140
    told = invoke_plainly("replay", tmp_path / "one.json").output
    assert f"after {summary['decisions']} steps" in told
    invoke(data, "record", tmp_path / "one.json", "-o", tmp_path / "one.gif")
    assert (tmp_path / "one.gif").stat().st_size > 0
    assert "all" in invoke(data, "explain", "latest").output
    invoke(data, "export", "latest", "-o", tmp_path / "agent")


def test_a_sweep_searches_weights_on_the_map_that_it_began_with(tmp_path: Path) -> None:
    """A trial is trained and scored after the map's file was deleted."""
    write_map(tmp_path / "canyon.yaml")
    own = CURRICULUM.replace("140", "200, map: canyon.yaml").replace("2_048", "512")
    write(tmp_path, "judged.yaml", own)
    sweep = load_sweep(write(tmp_path, "sweep.yaml", SWEEP))
    (tmp_path / "canyon.yaml").unlink()
    task = TrialTraining(
        sweep=sweep.config,
        base=sweep.base,
        params={"env.rewards.bump": -0.5},
        seed=5,
        evaluation_seed=6,
        episodes=4,
        name="one",
        tags={},
        data_folder=DataFolder(tmp_path / "data"),
        key=None,
    )
    score = measure(task, Patient())
    assert score is not None
    assert 0 <= score.value <= 1


class Patient:
    """Follows a training to its end."""

    def should_stop(self) -> bool:
        return False

    def at(self, step: int, steps: int, win_rate: float | None) -> None:
        pass


def test_agents_are_judged_on_maps_that_no_training_met(tmp_path: Path) -> None:
    file = write(tmp_path, text=CURRICULUM.replace("140", "400, map: {generate: {count: 3}}"))
    settings: Any = load_curriculum(file).config.env
    other: Any = evaluated(settings)
    met, unseen = ({one.content_hash for one in chosen_maps(each)} for each in (settings, other))
    assert len(met | unseen) == 6
    assert evaluated(other) != other
    assert evaluated(settings) == other
    one_map = GorgeSettings()
    assert evaluated(one_map) is one_map

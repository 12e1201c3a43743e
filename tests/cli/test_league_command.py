"""`aimbot-lab league`: runs, snapshots and scripts rated, and what is refused."""

from pathlib import Path

import pytest
from tiny_runs import CURRICULUM, invoke, train, write

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import download_artifact

DUEL = """
name: tiny duel
seed: 7
env: {world: duel, num_envs: 8, time_limit: 1.0, health: 1}
self_play: {save_steps: 300, swap_steps: 200}
lessons:
  - name: itself
    targets: {self: 2, greedy: 1, aimbot: 1}
    difficulty: {self: [1, 0, 0, 0, 0], greedy: [1, 0, 0, 0, 0], aimbot: [1, 0, 0, 0, 0]}
train: {algo: hybrid_ppo, total_steps: 1_152, n_steps: 32, batch_size: 384, n_epochs: 1,
        network: {layers: [8]}, torch_threads: 1}
tracking: {experiment: tests}
"""
ASKED = ("--games", 12, "--snapshots", 2, "--difficulty", 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def run_id(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run by self-play, too short to learn anything."""
    folder = tmp_path_factory.mktemp("curricula")
    return train(data, write(folder, text=DUEL))["run_id"]


def test_a_league_rates_snapshots_agents_and_scripts_alike_each_time(
    data: Path, run_id: str, tmp_path: Path
) -> None:
    page = tmp_path / "league.html"
    found = invoke(data, "league", run_id[:12], *ASKED, "-o", page, "--json").document
    names = {player["name"] for player in found["players"]}
    scripts = {"still", "random", "greedy", "aimbot"}
    assert names >= {"snapshot-000000", "snapshot-000002", "last", *scripts}
    for player in found["players"]:
        assert player["lower"] <= player["rating"] <= player["upper"]
        assert player["games"] == 12 * (len(names) - 1)
    rated = {player["name"]: player["rating"] for player in found["players"]}
    assert rated["greedy"] == 1200.0
    assert rated["aimbot"] > rated["still"]
    assert sum(player["nash"] for player in found["players"]) == pytest.approx(1.0)
    assert 0.0 < found["cycle_p"] <= 1.0
    assert "<svg" in page.read_text(encoding="utf-8")
    assert invoke(data, "league", run_id[:12], *ASKED, "--json").document == found
    kept = download_artifact(DataFolder(data), run_id, name="league/games.csv")
    assert len(kept.read_text().splitlines()) == 1 + len(names) * (len(names) - 1) // 2


def test_a_damaged_snapshot_is_named_and_the_others_play(data: Path, run_id: str) -> None:
    path = download_artifact(DataFolder(data), run_id, name="pool/snapshot-000000.safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        told = invoke(data, "league", run_id[:12], *ASKED)
    finally:
        path.write_bytes(whole)
    assert f"left out: run {run_id[:8]}: snapshot-000000: " in told.said
    assert "snapshot-000002" in told.output


def test_what_can_not_play_together_is_refused_in_one_line(
    data: Path, run_id: str, tmp_path: Path
) -> None:
    other = train(data, write(tmp_path, text=CURRICULUM), "--set", "train.total_steps=512")
    for words, fault in (
        ((run_id, run_id), "is named twice"),
        ((other["run_id"],), "world arena has no matches of two agents"),
        ((run_id, "--difficulty", 6), "--difficulty: there is none 6; there are 1 to 5"),
        (("nothing",), "no such run"),
    ):
        said = invoke(data, "league", *words, wanted=2).said
        assert fault in said
        assert "\n" not in said.strip()

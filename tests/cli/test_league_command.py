"""`aimbot-lab league`: runs, snapshots and scripts rated, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny_runs import CURRICULUM, invoke, train, write

from aimbot_lab.replay.episode import load_replay
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact

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
ASKED = ("--games", 6, "--snapshots", 2, "--difficulty", 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def run_id(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run by self-play, too short to learn anything."""
    folder = tmp_path_factory.mktemp("curricula")
    return train(data, write(folder, text=DUEL))["run_id"]


def refused(data: Path, *words: Any) -> str:
    """The one line that refuses it."""
    (line,) = invoke(data, *words, wanted=2).said.strip().splitlines()
    return str(line)


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
        assert player["games"] == 6 * (len(names) - 1)
    rated = {player["name"]: player["rating"] for player in found["players"]}
    assert rated["greedy"] == 1200.0
    assert rated["aimbot"] > rated["still"]
    assert sum(player["nash"] for player in found["players"]) == pytest.approx(1.0)
    assert 0.0 < found["cycle_p"] <= 1.0
    html = page.read_text(encoding="utf-8")
    assert html.count("<svg") == 2
    assert html.count('id="trail-') == 1  # a line for the run
    assert "Ratings over steps" in html
    assert f"run {run_id[:8]}" in html
    kept = download_artifact(DataFolder(data), run_id, name="league/games.csv")
    assert len(kept.read_text().splitlines()) == 1 + len(names) * (len(names) - 1) // 2


def test_evaluate_plays_scripts_the_first_snapshot_and_the_best_agent(
    data: Path, run_id: str
) -> None:
    found = invoke(data, "evaluate", run_id[:12], "--episodes", 4, "--json").document
    met = [(one["opponent"], one["difficulty"]) for one in found["matches"]]
    opponents = ["still", "random", "greedy", "aimbot", "snapshot-000000", "best"]
    assert met == [(name, level) for name in opponents for level in (1, 2, 3, 4, 5, 0)]
    for one in found["matches"]:
        assert one["games"] == (4 if one["difficulty"] else 20)
        assert one["lower"] <= one["score"] <= one["upper"]
        assert one["score"] == (one["wins"] + one["draws"] / 2) / one["games"]
    kept = download_artifact(DataFolder(data), run_id, name="evaluation/last.json")
    assert json.loads(kept.read_text())["matches"] == found["matches"]
    told = invoke(
        data, "evaluate", run_id[:12], "--episodes", 2, "--no-baselines", "--agent", "best"
    )
    assert "snapshot-000000" in told.output
    assert "still" not in told.output  # a script that no lesson has


def test_compare_adds_the_direct_match(data: Path, run_id: str, tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    words = ("compare", run_id, run_id, "--episodes", 4, "-o", page)
    found = invoke(data, *words, "--json").document
    (scores,) = found["matches"]
    assert [one["difficulty"] for one in scores] == [1, 2, 3, 4, 5, 0]
    assert {one["opponent"] for one in scores} == {f"{run_id[:8]}:last"}
    assert found["unmatched"] == [""]
    assert "in matches against" in page.read_text(encoding="utf-8")
    told = invoke(data, *words)
    assert f"{100 * scores[-1]['score']:.1f} % [" in told.output


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
        ((run_id, "--difficulty", 6), "--difficulty 6: must be 1 to 5"),
        (("nothing",), "no such run"),
    ):
        assert fault in refused(data, "league", *words)


def test_a_match_is_filmed_against_a_snapshot_a_script_and_another_run(
    data: Path, run_id: str, tmp_path: Path
) -> None:
    asked = ("--difficulty", 1, "--size", 120)
    film = tmp_path / "match.gif"
    invoke(data, "record", run_id[:12], *asked, "-o", film)
    with Image.open(film) as found:
        assert found.size[0] == 240
        assert found.n_frames > 3
    kept = download_artifact(DataFolder(data), run_id, name="videos/match.gif")
    assert kept.read_bytes() == film.read_bytes()
    for against, name in (
        (None, "snapshot-000000, step 0"),
        ("aimbot", "aimbot"),
        ("snapshot-000002", "snapshot-000002, step 768"),
        (run_id[:12], f"last agent of tiny duel seed 7 ({run_id[:8]}), step 1,152"),
        (f"{run_id[:12]}:first", f"snapshot-000000 of tiny duel seed 7 ({run_id[:8]}), step 0"),
    ):
        chosen = () if against is None else ("--against", against)
        match = tmp_path / "match.json"
        invoke(data, "record", run_id[:12], *asked, *chosen, "-o", match)
        replay = load_replay(match)
        assert replay.about["away"] == name
        assert replay.about["home"] == "last agent, step 1,152"
        assert replay.episode.actions.shape[1] == 8


def test_an_opponent_that_there_is_not_is_refused_in_one_line(
    data: Path, run_id: str, tmp_path: Path
) -> None:
    for words, fault in (
        (("--against", "nobody"), "--against: 'nobody': no such run"),
        (("--against", "snapshot-000009"), "has the snapshots snapshot-000000 to snapshot-"),
        (("--against", f"{run_id[:12]}:7"), "valid after the colon are first, best, last"),
        (("--against", "first", "--target", "greedy"), "--target and --against: both say"),
        (("--difficulty", 5, "--against", "nobody"), "scripts are still, random, greedy, aimbot"),
    ):
        assert fault in refused(data, "record", run_id, *words, "-o", tmp_path / "a.gif")
    assert not (tmp_path / "a.gif").exists()

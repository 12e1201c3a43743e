"""The specification's table "Bad input": each line verbatim, exit code 2, and nothing created."""

from pathlib import Path

import pytest

from aimbot_lab.worlds.gorge.maps import SHIPPED_FILES
from tests.cli.tiny_runs import invoke

CURRICULUM = """name: walk
env: {{world: gorge{env}}}
lessons:
  - name: first
    targets: {targets}
    parameters: {parameters}
    completion_criteria: {{threshold: 0.8, min_lesson_length: 50}}
train: {{algo: hybrid_ppo, total_steps: 20_000, n_steps: 64, batch_size: 256{train}}}
"""
GOOD = {"env": "", "targets": "{walk: 1}", "parameters": "{}", "train": ""}
TOO_SHORT = "must be at least 132, the shortest way from start to end of map gorge (got 50)"
KEYS = (
    "world, num_envs, threads, map, max_steps, treasure_pool, treasure_num, view, features, "
    "windows, score, score_decay, random_start, win_share, rewards"
)
ENV = {
    "rays: {count: 3}": f"rays: unknown key of world gorge (valid keys: {KEYS})",
    "map: canyon.yaml": "map: no shipped map and no file canyon.yaml (shipped: gorge)",
    "treasure_num: 11": "treasure_num: must be at most 10, the sites in the pool (got 11)",
    "treasure_pool: [3, 3]": "treasure_pool.1: 3 is given twice",
    "treasure_pool: [12]": "treasure_pool.0: map gorge has sites 0 to 9 (got 12)",
    "max_steps: 50": f"max_steps: {TOO_SHORT}",
    "score: {end: -1}": "score.end: must be at least 0 (got -1)",
    "features: [pos_row, pos_col, end_mp]": (
        "features.2: unknown feature 'end_mp' (nearest valid name: end_map)"
    ),
    "features: []": "features: must not be empty",
    "map: {generate: {obstacle_share: 0.95}}": (
        "map.generate: no solvable map with obstacle_share 0.95 in 1,000 tries"
    ),
}
TRAIN = {
    "aim: hybrid": "aim: world gorge has no continuous actions",
    "aim_bins: [-1, 1]": "aim_bins: world gorge has no continuous actions",
    "network: {features: egocentric}": "network.features: egocentric needs world arena",
}
LESSON = {
    "targets": ("{goto: 1}", "goto: unknown target (valid keys: walk, collect, score)"),
    "parameters": ("{treasure_num: 1.5}", "treasure_num: must be a whole number (got 1.5)"),
}
SETTINGS = [
    *(("env", f", {what}", f"env.{line}") for what, line in ENV.items()),
    *(("train", f", {what}", f"train.{line}") for what, line in TRAIN.items()),
    *((where, what, f"lessons.0.{where}.{line}") for where, (what, line) in LESSON.items()),
    ("parameters", "{max_steps: 50}", f"lessons.0.parameters.max_steps: {TOO_SHORT}"),
]
TABLES = [
    (", map: {generate: {count: 3}}", "needs one map (env.map generates 3)"),
    (", features: [pos_row, pos_col]", "needs the features position and list_treasure"),
]


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, **given: str) -> list[str]:
    """What `run` says of the curriculum, without file, line and column; it creates nothing."""
    monkeypatch.chdir(folder)
    Path("walk.yaml").write_text(CURRICULUM.format(**{**GOOD, **given}), encoding="utf-8")
    before = sorted(folder.rglob("*"))
    said = invoke(folder / "data", "run", "walk.yaml", wanted=2).said
    assert sorted(folder.rglob("*")) == before
    lines = said.splitlines()
    assert all(line.startswith("walk.yaml:") for line in lines)
    return [line.split(": ", 1)[1] for line in lines]


@pytest.mark.parametrize(("where", "what", "line"), SETTINGS)
def test_a_wrong_setting_gives_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, what: str, line: str
) -> None:
    assert refused(tmp_path, monkeypatch, **{where: what}) == [line]


@pytest.mark.parametrize(("env", "line"), TABLES)
def test_a_table_that_can_not_be_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str, line: str
) -> None:
    learner = CURRICULUM.replace("hybrid_ppo", "q_learning").replace(", batch_size: 256", "")
    monkeypatch.setattr(f"{__name__}.CURRICULUM", learner)
    assert refused(tmp_path, monkeypatch, env=env) == [f"train.algo: q_learning {line}"]


CANYON = SHIPPED_FILES[0].read_text("utf-8").replace("name: gorge", "name: canyon")


def test_a_broken_map_gives_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "canyon.yaml").write_text(CANYON.replace("S", "."), encoding="utf-8")
    (line,) = refused(tmp_path, monkeypatch, env=", map: canyon.yaml")
    assert line.startswith("env.map: canyon.yaml:")
    assert line.endswith("rows: must hold one S (got 0)")

"""Wrong sweeps are reported in one line with their place; a sweep keeps what it began with."""

import os
from pathlib import Path

import pytest
from sweep_files import CURRICULUM, RACE, SWEEP, changed, storage_in, write_sweep

from aimbot_lab.experiment.config.document import parse_curriculum, with_overrides
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.document import is_sweep_file, load_sweep
from aimbot_lab.sweep.record import begin, fingerprint, load
from aimbot_lab.sweep.space import default_params, outside_space, overrides
from tests.cli.tiny_runs import invoke_in

FACING = "env.rewards.in_area: {type: float, low: 0.5, high: 50, log: true}"
CASES = [
    (("rewards.spin_penalty", "rewards.spin_penalti"), "5:3: search.env.rewards.spin_penalti: "
     "unknown key (nearest valid key: spin_penalty)"),
    (("low: 0.1, high: 10", "low: 10, high: 0.1"), "search.env.rewards.spin_penalty.high: must be "
     "greater than low, 10 (got 0.1)"),
    (("low: 0.1", "low: 0"), "search.env.rewards.spin_penalty.low: must be greater than 0 where "
     "log is true (got 0)"),
    ((FACING, "seed: {type: int, low: 1, high: 9}"), "search.seed: can't be searched"),
    ((FACING, "env.presets[0]: {type: categorical, choices: [a.json, b.json]}"), "search.env."
     "presets[0]: can't be searched: a sweep keeps one set of"),
    ((FACING, "names: {type: int, low: 1, high: 9}"), "search.names: unknown key (nearest valid "
     "key: name)"),
    ((FACING, "train.n_epochs: {type: int, low: 1, high: 4, step: 2}"), "step: must divide"),
    (("base: tiny.yaml", "base: tini.yaml"), "base: there is no file"),
    (("trials: 3", "trials: 3\noverrides: {train.gama: 1}"), "overrides: train.gama=1: "
     "train.gama: unknown key"),
    (("trials: 3", "trials: 3\noverrides: {seed: 4}"), "9:13: overrides.seed: has no effect here"),
    (("trials: 3", "trials: 3\noverrides: {train.algo: hybrid_ppo, train.actors.number: 1}"),
     "base: has train.actors, but trials play alone"),
    (("trials: 3", "trials: 3\nworkers: 4"), "workers: must be at most parallel, 2 (got 4)"),
    ((FACING, "env.rewards.in_area: {type: categorical, choices: [1, 1.0]}"), "choices: must "
     "differ from each other (1, 1.0 and true do not)"),
    ((FACING, "train.n_epochs: {type: float, low: 1, high: 4}"), "search.train.n_epochs.type: "
     "must be a whole number (got 2.1"),
    ((FACING, "train.batch_size: {type: int, low: 64, high: 512, log: true}"), "6:21: search."
     "train.batch_size: must divide env.num_envs * train.n_steps = 512 (got 232"),
    ((FACING, "train.network.layers: {type: categorical, choices: [[8], [4]]}\n"
     "  train.network.layers.0: {type: int, low: 2, high: 8}"), "7:3: search.train.network.layers."
     "0: lies within train.network.layers, which is searched too"),
    ((FACING, "'env.rewards.in_area ': {type: float, low: 1, high: 4}"), "6:3: search.env.rewards."
     "in_area : must be a key such as"),
    (("trials: 3", "trials: 3\npruner: {kind: halving, first_steps: 2048}"), "pruner.first_steps: "
     "must be less than the steps of a trial's trainings, 2048 (got 2048)"),
    (("seeds: 2\nlease", "seeds: 1\npruner: {kind: wilcoxon}\nlease"), "pruner.kind: must not be "
     "wilcoxon where seeds is less than 3 (got 1)"),
    (("seeds: 2\nlease", "seeds: 2\npruner: {kind: wilcoxon}\nlease"), "pruner.kind: must not be "
     "wilcoxon where seeds is less than 3 (got 2): it compares 4 results or more, of all trainings "
     "but the last, with 2 results each"),
    (("10}\ntrials", "10, optimum: {env.rewards.in_area: 3}}\ntrials"), "optimum: must be "
     "left out unless objective.measure is planted"),
    (("measure: win_rate", "measure: planted, optimum: {env.rewards.in_area: 0, "
      "env.rewards.spin_penalty: 1}"), "optimum.env.rewards.in_area: must lie in the range that is "
     "searched, 0.5 to 50 (got 0)"),
    (("measure: win_rate, episodes: 10", "measure: steps_to_goal"), "7:22: objective.measure: must "
     "not be steps_to_goal: the last lesson of base, 'near', has no completion_criteria"),
    ((FACING, "train.total_steps: {type: int, low: 512, high: 1024}"), "6:3: search.train."
     "total_steps: must not be"),
    (("best: 1,", "best: 1, also: {one: {env.rewards.in_area: 51}},"), "confirm.also.one."
     "env.rewards.in_area: must lie within search.env.rewards.in_area; this is 51"),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "told"), CASES, ids=lambda value: str(value[1])[:30])
def test_a_fault_is_one_line_with_its_place(
    tmp_path: Path, pair: tuple[str, str], told: str
) -> None:
    # Of trainings that never pass, those with fewer steps would count as the faster ones.
    path = write_sweep(tmp_path, changed(RACE if "total_steps" in pair[1] else SWEEP, pair))
    with pytest.raises(ConfigurationError) as caught:
        load_sweep(path)
    assert any(told in line and line.startswith(f"{path}:") for line in caught.value.faults)
    assert all("\n" not in line for line in caught.value.faults)


def test_a_tracking_server_that_does_not_answer_is_told_before_anything_is_created(
    tmp_path: Path,
) -> None:
    path = write_sweep(tmp_path)
    before = sorted(os.listdir(tmp_path))
    words = ("sweep", path, "--data-dir", "data", "--tracking-uri", "http://127.0.0.1:9")
    assert len(invoke_in(tmp_path, *words, wanted=1).said.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_options_replace_the_files_values_and_are_told_where_they_are_wrong(tmp_path: Path) -> None:
    path = write_sweep(tmp_path)
    assert load_sweep(path, {"trials": 7, "name": "other"}).config.trials == 7
    with pytest.raises(ConfigurationError, match=r"^--trials 0: trials: must be at least 1"):
        load_sweep(path, {"trials": 0})


def test_values_reach_the_curriculum_to_the_last_bit(tmp_path: Path) -> None:
    layers = "train.network.layers: {type: categorical, choices: [[8], [8, 8]]}"
    sweep = load_sweep(write_sweep(tmp_path, changed(SWEEP, (FACING, layers))))
    params = {"env.rewards.spin_penalty": 0.1 + 0.2, "train.network.layers": "[8, 8]"}
    given = overrides(params, sweep.config.search)
    config = parse_curriculum(sweep.base.resolved_text, "here", given).config
    assert config.env.rewards.spin_penalty == 0.1 + 0.2
    assert config.train.network.layers == (8, 8)


def test_the_curriculums_own_values_are_known_unless_they_lie_outside(tmp_path: Path) -> None:
    inside = load_sweep(write_sweep(tmp_path))
    assert default_params(inside.config.search, inside.base) == {
        "env.rewards.spin_penalty": 1.0,
        "env.rewards.in_area": 5.0,
    }
    outside = load_sweep(write_sweep(tmp_path, changed(SWEEP, ("low: 0.5", "low: 6"))))
    assert default_params(outside.config.search, outside.base) is None
    assert outside_space(outside.config.search, outside.base) == ["env.rewards.in_area (5.0)"]


@pytest.mark.parametrize("key", ["search: {}", "trials: 4"])
def test_a_file_with_a_key_that_only_sweeps_have_is_checked_as_one(
    tmp_path: Path, key: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"name: a\n{key}\n", encoding="utf-8")
    assert is_sweep_file(str(file))


BLOCKS = "goto:\n  1:\n    - {name: yard, fire_base: {center: [5, 5], diameter: 6}}\n"


def test_trials_and_reruns_play_the_blocks_that_the_sweep_began_with(tmp_path: Path) -> None:
    path = write_sweep(tmp_path)
    (tmp_path / "own.yaml").write_text(BLOCKS, encoding="utf-8")
    given = CURRICULUM.replace("env: {", "env: {presets: [own.yaml], ")
    (tmp_path / "tiny.yaml").write_text(given, encoding="utf-8")
    sweep = load_sweep(path)
    storage = storage_in(tmp_path, "small")
    begin(storage, sweep, resume=False)
    (tmp_path / "own.yaml").write_text(BLOCKS.replace("6", "3"), encoding="utf-8")
    record = load(storage, "small")
    assert record.base.config == sweep.base.config
    assert with_overrides(record.base, ["seed=9"]).config.env == sweep.base.config.env
    assert fingerprint(load_sweep(path)) != fingerprint(sweep)

"""Sweeps and several seeds in worlds that have no threads and no snapshots: Gymnasium's."""

import gc
from dataclasses import replace
from pathlib import Path

import pytest
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import BaseBuffer
from sweep_files import Watch, changed, storage_in, task_of

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.record import begin
from aimbot_lab.sweep.report import search_cost
from aimbot_lab.sweep.settings import ObjectiveSettings
from aimbot_lab.sweep.trial import measure
from aimbot_lab.tracking.history import list_runs

CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 30}}
lessons: [{name: up, completion_criteria: {threshold: 0.99}}]
train: {total_steps: 384, n_steps: 32, batch_size: 64, n_epochs: 1, network: {layers: [8]}}
"""
SWEEP = """
name: pole
base: base.yaml
search: {train.learning_rate: {type: float, low: 1e-4, high: 1e-2, log: true}}
objective: {measure: steps_to_goal}
trials: 2
tracking: {experiment: tests}
"""


def test_a_training_on_one_core_has_one_thread_of_each_kind(tmp_path: Path) -> None:
    arena = tmp_path / "walk.yaml"
    arena.write_text(
        "name: walk\nenv: {threads: 2}\nlessons: [{name: one, targets: {goto: 1}}]\n"
        "train: {torch_threads: 2}\n",
        encoding="utf-8",
    )
    pole = tmp_path / "pole.yaml"
    pole.write_text(changed(CURRICULUM, ("n_epochs: 1", "n_epochs: 1, torch_threads: 2")))
    for file in (arena, pole):
        found = load_curriculum(file, load_curriculum(file).config.one_core).config
        assert found.train.torch_threads == 1
        assert getattr(found.env, "threads", 1) == 1


def test_a_stopped_training_without_snapshots_begins_again_and_is_worth_the_same(
    tmp_path: Path,
) -> None:
    """Its checkpoint would go on with other episodes, and the sweep with another result."""
    sweep = swept(tmp_path, CURRICULUM, SWEEP)
    values = {"train.learning_rate": 1e-3}
    whole = measure(task_of(sweep, tmp_path / "whole", None, values), Watch())
    task = task_of(sweep, tmp_path / "broken", "sweep 1 search 0", values)
    assert measure(task, Watch(stop_at=128)) is None
    again = measure(task, Watch())
    assert whole is not None
    assert again is not None
    assert (again.value, again.state_sha256) == (whole.value, whole.state_sha256)
    states = {run.run_id: run.status for run in list_runs(task.data_folder)}
    assert states.pop(str(again.run_id)) == "FAILED"  # its steps were spent
    assert [*states.values()] == ["KILLED"]


FREE = """
name: free
env: {world: gymnasium, id: CartPole-v1, num_envs: 4}
train: {total_steps: 1280, n_steps: 64, batch_size: 64, n_epochs: 4, network: {layers: [16]}}
"""
RATES = """
name: rates
base: base.yaml
search: {train.learning_rate: {type: categorical, choices: [1e-6, 3e-3]}}
objective: {measure: return, episodes: 10}
tracking: {experiment: tests}
"""
PENDULUM = """
name: swing
env: {world: gymnasium, id: Pendulum-v1}
train: {algo: sac, total_steps: 4096, options: {learning_starts: 200}}
"""
OPTIONS = """
name: options
base: base.yaml
search:
  train.options.tau: {type: float, low: 0.001, high: 0.1, log: true}
  train.options.gradient_steps: {type: int, low: 1, high: 4}
objective: {measure: return}
"""


def swept(folder: Path, base: str, sweep: str) -> LoadedSweep:
    (folder / "base.yaml").write_text(base, encoding="utf-8")
    (folder / "sweep.yaml").write_text(sweep, encoding="utf-8")
    return load_sweep(folder / "sweep.yaml")


def trainings() -> list[object]:
    """Every algorithm and buffer that there is."""
    return [one for one in gc.get_objects() if issubclass(type(one), BaseAlgorithm | BaseBuffer)]


def test_by_returns_the_learning_rate_is_found_that_learns_and_no_buffers_are_left(
    tmp_path: Path,
) -> None:
    """A worker trains one after another, and collects garbage seldom."""
    loaded = swept(tmp_path, FREE, RATES)
    found = []
    gc.disable()
    try:
        before = trainings()  # of other tests, which are held here
        for rate in (1e-6, 3e-3):
            values = {"train.learning_rate": rate}
            score = measure(task_of(loaded, tmp_path / "data", values=values), Watch())
            assert score is not None
            assert (score.wins, [*score.cells.values()]) == (None, [score.value])
            found.append(score.value)
        assert {*map(id, trainings())} <= {*map(id, before)}
    finally:
        gc.enable()
    assert found[0] < 40 < found[1]


def test_options_of_an_algorithm_can_be_searched(tmp_path: Path) -> None:
    loaded = swept(tmp_path, PENDULUM, OPTIONS)
    values = {"train.options.tau": 0.01, "train.options.gradient_steps": 2}
    task = task_of(loaded, tmp_path / "data", values=values)
    wanted = {"learning_starts": 200, "tau": 0.01, "gradient_steps": 2}
    assert task.curriculum().config.train.options == wanted


def test_an_environment_in_which_nothing_is_won_is_swept_by_returns_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"must not be win_rate: .* make it return"):
        swept(tmp_path, FREE, RATES.replace("measure: return", "measure: win_rate"))


def test_keys_that_an_agent_keeps_as_it_is_scored_are_named_as_a_sweep_begins(
    tmp_path: Path,
) -> None:
    """Rewards searched there by returns would score themselves."""
    rewards = "{type: categorical, choices: [true, false]}"
    searched = f"search: {{env.kwargs.sutton_barto_reward: {rewards}, "
    loaded = swept(tmp_path, FREE, RATES.replace("search: {", searched))
    record = begin(storage_in(tmp_path, "rates"), loaded, resume=False)
    line = search_cost(record, left=1)
    assert "; each trial is scored with its own env.kwargs.sutton_barto_reward;" in line
    by_steps = replace(record.config, objective=ObjectiveSettings(measure="steps_to_goal"))
    assert "its own" not in search_cost(replace(record, config=by_steps), left=1)

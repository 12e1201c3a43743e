"""Sweeps and several seeds in worlds that have no threads and no snapshots: Gymnasium's."""

from pathlib import Path

import pytest
from sweep_files import changed
from test_trained import Watch, task_of

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.trial import measure
from aimbot_lab.tracking.history import list_runs

CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 30}}
lessons: [{name: up, completion_criteria: {threshold: 0.99}}]
train: {total_steps: 1024, n_steps: 32, batch_size: 64, n_epochs: 1, network: {layers: [8]}}
"""
SWEEP = """
name: pole
base: pole.yaml
search: {train.learning_rate: {type: float, low: 1e-4, high: 1e-2, log: true}}
objective: {measure: steps_to_goal}
trials: 2
tracking: {experiment: tests}
"""


@pytest.fixture
def sweep(tmp_path: Path) -> LoadedSweep:
    (tmp_path / "pole.yaml").write_text(CURRICULUM, encoding="utf-8")
    file = tmp_path / "pole_sweep.yaml"
    file.write_text(SWEEP, encoding="utf-8")
    return load_sweep(file)


def test_a_world_without_threads_can_be_swept_on_one_core_a_worker(sweep: LoadedSweep) -> None:
    assert sweep.base.config.env.world == "gymnasium"
    assert sweep.base.config.train.torch_threads == 1


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
    sweep: LoadedSweep, tmp_path: Path
) -> None:
    """Its checkpoint would go on with other episodes, and the sweep with another result."""
    values = {"train.learning_rate": 1e-3}
    whole = measure(task_of(sweep, tmp_path / "whole", None, values), Watch())
    task = task_of(sweep, tmp_path / "broken", "sweep 1 search 0", values)
    assert measure(task, Watch(stop_at=512)) is None
    again = measure(task, Watch())
    assert whole is not None
    assert again is not None
    assert (again.value, again.state_sha256) == (whole.value, whole.state_sha256)
    states = {run.run_id: run.status for run in list_runs(task.data_folder)}
    assert states.pop(str(again.run_id)) == "FAILED"  # its steps were spent
    assert [*states.values()] == ["KILLED"]

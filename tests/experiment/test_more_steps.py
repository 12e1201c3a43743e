"""A run that is given more steps has one history, and says what its schedules jump to."""

from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs import run_record
from aimbot_lab.experiment.runs.result import RunResult
from aimbot_lab.experiment.runs.resume import check_resume, find_resumable, newest_resumable
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest, note_spent_steps
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import metric_history
from aimbot_lab.training.checkpoint import CODE
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.version import code_hash

POLE = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 50}}
lessons: [{name: only, completion_criteria: {threshold: 0.99, min_lesson_length: 20}}]
train:
  {algo: ppo, total_steps: 250, n_steps: 16, batch_size: 32, reward_scale: 1, torch_threads: 1,
   n_epochs: 2, learning_rate: {schedule: linear, start: 3e-3, end: 1e-5}, network: {layers: [8]}}
"""


@pytest.fixture
def ended(data_folder: DataFolder, tmp_path: Path) -> RunResult:
    """A run that has spent its 256 steps."""
    file = tmp_path / "pole.yaml"
    file.write_text(POLE, encoding="utf-8")
    return trained(RunRequest(load_curriculum(file), data_folder))[0]


def trained(request: RunRequest) -> tuple[RunResult, list[str]]:
    """The result, and what was said on the way."""
    told: list[str] = []
    result = run_curriculum(
        request, SilentObserver(), should_stop=lambda: False, on_outage=told.append
    )
    return result, told


def extended(data_folder: DataFolder, run_id: str, steps: int) -> tuple[RunResult, list[str]]:
    run = find_resumable(run_id, data_folder)
    curriculum = run.curriculum([f"train.total_steps={steps}"])
    return trained(check_resume(run, curriculum, data_folder)[0])


def logged(data_folder: DataFolder, run_id: str, key: str) -> list[tuple[int, float]]:
    points = metric_history(data_folder, run_id, key=key)
    return [(point.step, point.value) for point in points]


def test_more_steps_begin_at_the_end_and_another_learning_rate_is_kept_with_its_step(
    data_folder: DataFolder, ended: RunResult
) -> None:
    assert (ended.status, ended.steps, ended.resumes_at) == ("FAILED", 256, 256)
    result, told = extended(data_folder, ended.run_id, 500)
    assert (result.run_id, result.steps) == (ended.run_id, 512)
    # 1 - 256 / 250 is less than nothing, 1 - 256 / 500 is 0.488.
    jump = "train.total_steps changed: at step 256 train.learning_rate from 1e-05 to 0.001469"
    assert jump in told
    for key in ("train/learning_rate", names.STEPS_PER_SECOND):  # the metrics are of one training
        steps = [step for step, _ in logged(data_folder, ended.run_id, key)]
        assert steps[-8:] == list(range(64, 513, 64)), key
    run = find_resumable(ended.run_id, data_folder)
    given = ["train.total_steps=600", "train.learning_rate=2.5e-4"]
    request, changes = check_resume(run, run.curriculum(given), data_folder)
    assert "train.learning_rate.schedule: was linear, is nothing" in [str(one) for one in changes]
    trained(request)
    rates = dict(logged(data_folder, ended.run_id, "train/learning_rate"))
    assert {rate for step, rate in rates.items() if step > 576} == {2.5e-4}
    run = find_resumable(ended.run_id, data_folder)
    assert [tuple(one) for one in run.record.rates] == [(512, 2.5e-4)]
    assert run.curriculum().config.train.learning_rate == 2.5e-4
    given = ["train.total_steps=750", "train.gamma=0.5"]
    with pytest.raises(ConfigurationError, match=r"train\.gamma"):
        check_resume(run, run.curriculum(given), data_folder)


def test_a_run_whose_process_died_at_its_end_ends_once_more_and_trains_nothing(
    data_folder: DataFolder, ended: RunResult
) -> None:
    before = logged(data_folder, ended.run_id, "train/loss")
    folder = data_folder.run_folder(ended.run_id) / "checkpoints"
    note_spent_steps(folder, None)
    run = find_resumable(ended.run_id, data_folder)
    result, _ = trained(check_resume(run, run.curriculum(), data_folder)[0])
    again = (result.status, result.steps, result.state_sha256)
    assert again == ("FAILED", ended.steps, ended.state_sha256)
    assert logged(data_folder, ended.run_id, "train/loss") == before
    with pytest.raises(ConfigurationError, match="has used up its 256 steps"):
        extended(data_folder, ended.run_id, 250)
    max(folder.glob("step-*")).unlink()  # an end without a checkpoint is told
    last = max(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*"))
    _, told = extended(data_folder, ended.run_id, 300)
    assert f"ended at step 256, and its last checkpoint is of step {last}" in "\n".join(told)


def test_a_finished_run_without_lessons_is_given_more_steps_and_ends_as_if_it_had_had_them(
    data_folder: DataFolder, tmp_path: Path
) -> None:
    file = tmp_path / "free.yaml"
    text = "".join(line for line in POLE.splitlines(keepends=True) if "lessons" not in line)
    file.write_text(text.replace("{schedule: linear, start: 3e-3, end: 1e-5}", "1e-3"))
    curriculum = load_curriculum(file)
    longer = load_curriculum(file, ["train.total_steps=500"])
    whole, _ = trained(RunRequest(longer, data_folder))
    ended, _ = trained(RunRequest(curriculum, data_folder))
    assert (ended.status, ended.steps, ended.resumes_at) == ("FINISHED", 256, 256)
    spent = "has used up its 256 steps; give it more, for exam"
    with pytest.raises(ConfigurationError, match=spent):
        extended(data_folder, ended.run_id, 250)
    assert newest_resumable(curriculum, data_folder) is None  # `run --resume` begins a new one
    result, _ = extended(data_folder, ended.run_id, 500)
    assert (result.status, result.steps) == ("FINISHED", 512)
    run = find_resumable(ended.run_id, data_folder)
    with pytest.raises(ConfigurationError, match=r"its 512 steps; .*total_steps=1024"):
        check_resume(run, run.curriculum(), data_folder)
    assert result.state_sha256 == whole.state_sha256


def test_code_that_changed_since_the_checkpoint_is_told_unless_none_is_known(
    data_folder: DataFolder, ended: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changes(steps: int) -> list[str]:
        _, told = extended(data_folder, ended.run_id, steps)
        return [line for line in told if "unbroken" in line]

    monkeypatch.setattr(run_record, "code_hash", lambda: "0ddc0de5")
    assert changes(300) == []
    monkeypatch.setattr(run_record, "code_hash", lambda: None)  # as older versions
    change = f"code of aimbot-lab 0ddc0de5 is now {code_hash()}"
    assert changes(350) == [f"the result may differ from an unbroken run's: {change}"]
    record = data_folder.run_folder(ended.run_id) / "checkpoints" / "run.json"
    record.write_text(record.read_text().replace(f'"{CODE}": "{code_hash()}", ', ""))
    assert code_hash() not in record.read_text()
    assert changes(400) == []

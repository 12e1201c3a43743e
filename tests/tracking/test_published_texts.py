"""What a run publishes holds no password of the address it is published at."""

import pytest

import aimbot_lab.experiment.runs.run as experiment_run
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import RunRequest, run_curriculum
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.run_hooks import SilentObserver

CURRICULUM = """
name: tiny
env: {num_envs: 2}
lessons:
  - {name: only, targets: {goto: 1}, completion_criteria: {threshold: 0.9}}
train: {total_steps: 8, n_steps: 2, batch_size: 2, n_epochs: 1, torch_threads: 1}
tracking: {uri: "http://me:secret@host:5000"}  # was: http://me:older@host
"""


def test_passwords_reach_neither_artifacts_nor_the_description(tmp_path, monkeypatch):
    file = tmp_path / "tiny.yaml"
    file.write_text(CURRICULUM)
    tracker, opened = MemoryTracker(), []

    def open_run(_folder, settings, description, **_):
        opened.append((settings, description))
        return tracker

    monkeypatch.setattr(experiment_run, "open_run", open_run)
    request = RunRequest(load_curriculum(file), DataFolder(tmp_path / "data"))
    result = run_curriculum(request, SilentObserver(), should_stop=lambda: False)

    ((settings, description),) = opened
    assert settings.uri == "http://me:secret@host:5000"
    for name in ("curriculum.yaml", "resolved.yaml"):
        text = tracker.artifacts[name].decode()
        assert "http://me:***@host:5000" in text
        assert "secret" not in text
        assert "older" not in text
        (tmp_path / "again.yaml").write_text(text)
        assert load_curriculum(tmp_path / "again.yaml").config.lessons
    assert "secret" not in str(description)
    assert "secret" not in str(result.as_json())
    assert "secret" not in str(tracker.tags)
    assert (result.entries_dropped, result.agent_folder) == (0, None)


@pytest.mark.filterwarnings("ignore:Query string argument")
def test_an_open_run_shows_its_address_without_the_password(data_folder):
    from aimbot_lab.tracking.opening import RunDescription, open_run
    from aimbot_lab.tracking.settings import TrackingSettings

    uri = f"sqlite:///{data_folder.database}?timeout=5&password=secret"
    tracker = open_run(data_folder, TrackingSettings(uri=uri), RunDescription("shown"))
    assert tracker.tracking_uri == uri.replace("secret", "***")
    tracker.finish("FINISHED")

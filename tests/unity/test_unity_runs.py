"""Runs on a build, by the command line: trained, evaluated, resumed and refused."""

from pathlib import Path

import pytest

from aimbot_lab.cli.view import PlainView
from aimbot_lab.experiment.conversion.players import export_player
from aimbot_lab.foundation.metric_names import ERRORS_LOGGED
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run, metric_history
from aimbot_lab.tracking.tracker import saved_agents
from aimbot_lab.training.callbacks import lesson_callback
from tests.cli.tiny_runs import invoke, invoke_in, train, write
from tests.unity.stand_in_build import write_build

pytest.importorskip("grpc")
CURRICULUM = """
name: built
seed: 7
env: {world: unity, file_name: BUILD, num_envs: 3}
lessons:
  - name: all
    targets: {right: 1}
    completion_criteria: {threshold: 0.99, min_lesson_length: 500}
train:
  algo: ppo
  total_steps: 192
  n_steps: 32
  batch_size: 96
  n_epochs: 1
  network: {layers: [8], scaling: running}
  torch_threads: 1
tracking: {experiment: tests}
"""
TRAINER = """
behaviors:
  AimbotLab:
    trainer_type: ppo
    max_steps: 512
    time_horizon: 32
    hyperparameters: {batch_size: 64, buffer_size: 256}
    network_settings: {hidden_units: 8, num_layers: 1}
env_settings: {env_path: build/AimbotLab, env_args: [--curriculum, tiny.yaml, --agents, 8],
  seed: 4, num_envs: 2, timeout_wait: 600}
engine_settings: {time_scale: 30, no_graphics: true}
torch_settings: {device: cpu}
environment_parameters:
  goto_win_radius:
    curriculum:
      - name: wide
        completion_criteria: {behavior: AimbotLab, measure: progress, threshold: 0.3}
        value: {sampler_type: uniform, sampler_parameters: {min_value: 11, max_value: 12}}
      - {name: narrow, value: 2}
  difficulty.goto.2: 0
"""


def curriculum(folder: Path, mode: str = "plain") -> Path:
    return write(folder, text=CURRICULUM.replace("BUILD", str(write_build(folder, mode))))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a run whose steps were spent before its lesson was passed.

    Its build also sends logs.
    """
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # keeps one at each rollout
        told = train(folder / "data", curriculum(folder, "logs"))
    assert (told["steps"], told["resumes_at"]) == (192, 192)
    return folder / "data"


def test_an_agent_is_evaluated_on_its_build(data: Path) -> None:
    found = invoke(data, "evaluate", "latest", "--episodes", 3, "--json").document
    assert {"sampled", "random"} <= set(found["players"])


def test_an_agent_is_exported_for_its_scene(data: Path) -> None:
    session = pytest.importorskip("onnxruntime").InferenceSession
    path, plain = data / "agent.onnx", data / "plain.onnx"
    said = invoke(data, "export", "latest", "-o", path, "--temperature", 0).said
    wanted = "onnxruntime plays 10,000 observations as torch does: 0 other choices"
    assert f"agent.onnx, likeliest action; {wanted}" in said
    assert [one.name for one in session(path).get_inputs()] == ["obs_0", "action_masks"]
    invoke(data, "export", "latest", "-o", plain, "--for", "plain")
    assert [one.name for one in session(plain).get_inputs()] == ["observation", "noise"]
    refused = invoke(data, "export", "latest", "-o", data / "folder", "--for", "unity", wanted=2)
    assert refused.said == "--for unity: is only for .onnx files"


def test_a_build_had_its_agent_saved_and_its_errors_are_tracked(data: Path) -> None:
    run = find_run(DataFolder(data), "latest")
    assert "step-96" in saved_agents(run.tags)
    assert metric_history(DataFolder(data), run.run_id, key=ERRORS_LOGGED)[0].value == 1


@pytest.mark.parametrize("name", ["film.gif", "episode.json"])
def test_what_a_build_can_not_do_is_refused_in_a_line(data: Path, name: str) -> None:
    told = invoke(data, "record", "latest", "-o", data / name, wanted=2)
    assert told.said.strip() == (
        "the world unity has no replays: its episodes can't be recorded or filmed"
    )
    assert not (data / name).exists()


def test_a_resumed_run_says_first_that_its_episodes_begin_anew(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else past the stream that the test reads.
    monkeypatch.setattr(PlainView, "notice", PlainView.stage)
    more = ("--set", "train.total_steps=288", "--json")
    told = invoke(data, "resume", "latest", *more, wanted=1)
    assert told.document["steps"] == 288
    lines = told.said.splitlines()
    (said,) = [place for place, line in enumerate(lines) if "new episodes begin" in line]
    begun = [place for place, line in enumerate(lines) if line.endswith(" training")]
    assert said < begun[0]


def test_a_trainer_file_with_env_settings_trains_our_build_as_it_is_converted(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    export_player(tmp_path / "build")
    write(tmp_path, "config.yaml", TRAINER)
    invoke_in(tmp_path, "convert", "config.yaml", "-o", "mine.yaml")
    told = invoke_in(tmp_path, "run", "mine.yaml", "--trust", "--json", wanted=(0, 1)).document
    assert (told["seed"], told["steps"]) == (4, 512)
    wide, narrow = told["lessons"]
    assert (wide["name"], narrow["name"]) == ("wide", "narrow")
    assert wide["ended_at_step"] < 512
    assert wide["episodes"] > 0

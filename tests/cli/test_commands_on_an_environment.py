"""The commands on runs in a Gymnasium environment."""

from pathlib import Path

import pytest
from tiny_runs import invoke, train, write

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.tracking.settings import TrackingSettings

CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {length_above: 8}}
lessons: [{name: up, completion_criteria: {threshold: 0.9}}]
train: {algo: ppo, total_steps: 256, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    train(folder, write(folder, text=CURRICULUM))
    return folder


def test_a_world_that_counts_steps_has_its_times_in_steps(data: Path) -> None:
    output = invoke(data, "evaluate", "latest", "--episodes", 10, "--no-baselines").output
    row = next(line.split() for line in output.splitlines() if line.startswith("sampled"))
    assert "steps" in row
    assert "s" not in row


def test_small_returns_are_shown_with_their_decimals(data: Path) -> None:
    """A length of 10 to 40 steps is CartPole's return: its mean over ten episodes has decimals."""
    output = invoke(data, "evaluate", "latest", "--episodes", 9, "--seed", 2).output
    row = next(line.split() for line in output.splitlines() if line.startswith("sampled"))
    assert "." in row[-1]


def test_a_run_heeds_the_variables_of_mlflow_below_its_own_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, text=CURRICULUM)
    for name, value in {
        "MLFLOW_EXPERIMENT_NAME": "from outside",
        "MLFLOW_RUN_NAME": "walker",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true",
        "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "0.05",
    }.items():
        monkeypatch.setenv(name, value)
    invoke(tmp_path, "run", file, wanted=(0, 1))
    (heeded,) = list_runs(DataFolder(tmp_path))
    assert (heeded.name, heeded.experiment) == ("walker", "from outside")
    assert "system/cpu_utilization_percentage" in heeded.metrics
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false")
    named = ("--name", "mine", "--set", "tracking.experiment=own")
    invoke(tmp_path, "run", file, *named, wanted=(0, 1))
    newest = list_runs(DataFolder(tmp_path))[0]
    assert (newest.name, newest.experiment) == ("mine", "own")
    assert not [key for key in newest.metrics if key.startswith("system/")]


def test_an_experiment_of_the_environment_is_checked_and_a_blank_one_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", " ")
    assert TrackingSettings().experiment == "aimbot-lab"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "x" * 251)
    with pytest.raises(ConfigurationError, match="variable MLFLOW_EXPERIMENT_NAME: must have at"):
        TrackingSettings()
    assert TrackingSettings(experiment="own").experiment == "own"


TOO_MANY = "5,000 rows (episodes or agents at once): world gymnasium takes at most 4,096"


@pytest.mark.parametrize("command", [("evaluate", "latest"), ("compare", "latest", "latest")])
def test_more_episodes_than_the_world_has_rows_for_are_refused_in_a_line(
    data: Path, command: tuple[str, ...]
) -> None:
    assert TOO_MANY in invoke(data, *command, "--episodes", 5000, wanted=2).said


def test_an_evaluation_of_too_many_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    file = write(tmp_path, text=f"{CURRICULUM}evaluation: {{every: 64, episodes: 5000}}\n")
    assert TOO_MANY in invoke(tmp_path / "data", "run", file, wanted=2).said
    assert list_runs(DataFolder(tmp_path / "data")) == []

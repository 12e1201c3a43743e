"""What commands say about runs that trained nothing, or counted no episode."""

from pathlib import Path

import pytest
from tiny_runs import invoke, train, write

from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.opening import RunDescription, open_run
from aimbot_lab.tracking.settings import TrackingSettings

COMMANDS = (
    ("explain", "{run}"),
    ("evaluate", "{run}", "--episodes", "1"),
    ("compare", "{run}", "{run}"),
    ("record", "{run}", "-o", "{folder}/film.gif"),
    ("export", "{run}", "-o", "{folder}/agent"),
)


def opened(data: Path, name: str, *, below: str | None = None, **tags: str) -> str:
    """The id of a run of a sweep that is over."""
    marks = {"lab.sweep": "small", **{f"lab.{key}": value for key, value in tags.items()}}
    parent = {} if below is None else {"mlflow.parentRunId": below}
    described = RunDescription(name, tags={**marks, **parent})
    tracker = open_run(DataFolder(data), TrackingSettings(experiment="kept"), described)
    tracker.finish("FINISHED")
    return tracker.run_id


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A data folder with a sweep of two trials, the second of which has no training."""
    data = tmp_path_factory.mktemp("data")
    sweep = opened(data, "small")
    trials = [opened(data, f"small {n}", below=sweep, sweep_trial=str(n)) for n in (0, 1)]
    training = opened(data, "small 0 seed 0", below=trials[0], sweep_stage="search")
    return data, {"sweep": sweep, "trial": trials[0], "empty": trials[1], "training": training}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("kind", ["sweep", "trial"])
def test_a_sweep_and_its_trials_name_the_trainings_below_them(
    swept: tuple[Path, dict[str, str]], tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    data, ids = swept
    words = [word.format(run=ids[kind], folder=tmp_path) for word in command]
    told = invoke(data, *words, wanted=2).said
    assert "trained nothing itself" in told
    assert f"{ids['training'][:8]} (small 0 seed 0)" in told
    assert ("a sweep's trial" in told) == (kind == "trial")
    assert len(told.splitlines()) == 1


def test_a_trial_without_trainings_says_so(swept: tuple[Path, dict[str, str]]) -> None:
    data, ids = swept
    assert "it has none yet" in invoke(data, "explain", ids["empty"], wanted=2).said


def test_a_run_that_counted_no_episode_is_explained_in_a_line(tmp_path: Path) -> None:
    env = ("env.time_limit=60", "env.goto_win_radius=0.5", "train.total_steps=512")
    words = [word for one in env for word in ("--set", one)]
    run_id = train(tmp_path, write(tmp_path), *words)["run_id"]
    told = invoke(tmp_path, "explain", run_id, wanted=1).said
    assert told.startswith(f"run {run_id[:8]} (tiny seed 7) ended before an episode was counted")
    assert len(told.splitlines()) == 1


def test_a_sweep_that_never_began_is_named_with_what_begins_it(tmp_path: Path) -> None:
    said = invoke(tmp_path / "data", "sweep", "status", "rewards", wanted=2).said
    assert said.startswith("sweep 'rewards' has not begun here (there is no file ")
    assert said.endswith("; begin it with: aimbot-lab sweep rewards")
    assert not (tmp_path / "data").exists()

"""`run --init-from` and `--start-lesson`: a training that begins with another run's agent."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import invoke, train, write

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.agents import find_initial_agent
from aimbot_lab.experiment.runs.resume import check_resume, find_resumable
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.experiment.runs.run_record import RunRequest
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact, find_run, list_runs
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.training import Training


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def source(data: Path, file: Path) -> dict[str, Any]:
    document: dict[str, Any] = train(data, file)
    return document


@pytest.fixture(scope="module")
def begun(data: Path, file: Path, source: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = train(data, file, "--init-from", source["run_id"][:8])
    return document


def steps(total: int) -> tuple[str, str]:
    return "--set", f"train.total_steps={total}"


def agent_of(data: Path, run_id: str) -> Path:
    return download_artifact(DataFolder(data), run_id, name="agent/last")


def test_the_first_update_begins_with_the_agents_weights_and_scaling(
    data: Path, file: Path, source: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_with: dict[str, Any] = {}

    def learn(training: Training, *_: object, **__: object) -> None:
        begun_with.update(
            {name: tensor.clone() for name, tensor in training.model.policy.state_dict().items()},
            optimiser=len(training.model.policy.optimizer.state),
        )
        raise KeyboardInterrupt

    monkeypatch.setattr(Training, "learn", learn)
    start = find_initial_agent(source["run_id"], DataFolder(data), load_curriculum(file).config)
    request = RunRequest(load_curriculum(file), DataFolder(data), start=start)
    with pytest.raises(BaseException, match="aborted"):
        run_curriculum(request, SilentObserver(), should_stop=lambda: False)
    wanted = load_agent(agent_of(data, source["run_id"])).agent.policy.state_dict()
    assert begun_with.pop("optimiser") == 0  # nothing was learned with it
    assert any("statistics" in name for name in wanted)
    assert begun_with.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert tensor.equal(begun_with[name]), name


def test_the_same_command_ends_in_the_same_bits_and_the_run_says_where_it_began(
    data: Path, file: Path, source: dict[str, Any], begun: dict[str, Any], tmp_path: Path
) -> None:
    exported = tmp_path / "agent"
    invoke(data, "export", source["run_id"], "-o", exported)
    second = train(data, file, "--init-from", exported)
    assert begun["state_sha256"] == second["state_sha256"] != source["state_sha256"]
    run = find_run(DataFolder(data), begun["run_id"])
    assert run.tags["lab.init_from"] == source["run_id"]
    plain = find_run(DataFolder(data), source["run_id"])
    assert run.tags["lab.config"] != plain.tags["lab.config"]
    kept = download_artifact(DataFolder(data), begun["run_id"], name="start/agent.safetensors")
    theirs = agent_of(data, source["run_id"]) / "agent.safetensors"
    assert kept.read_bytes() == theirs.read_bytes()


def test_latest_is_the_newest_run_and_a_later_lesson_leaves_out_those_before(
    data: Path, file: Path
) -> None:
    newest = train(data, file, *steps(512))["run_id"]
    words = ("--init-from", "latest", "--start-lesson", 2, "--json")
    told = invoke(data, "run", file, *words, *steps(512), wanted=(0, 1))
    document = told.document
    assert find_run(DataFolder(data), document["run_id"]).tags["lab.init_from"] == newest
    assert f"starts with the last agent of run {newest[:12]}" in told.said
    assert [lesson["name"] for lesson in document["lessons"]] == ["second"]
    resolved = download_artifact(DataFolder(data), document["run_id"], name="resolved.yaml")
    assert [lesson.name for lesson in load_curriculum(resolved).config.lessons] == ["second"]


@pytest.mark.parametrize("steps_before", [0, 1])
def test_it_resumes_to_the_same_bits_though_the_source_is_gone(
    data: Path,
    file: Path,
    source: dict[str, Any],
    begun: dict[str, Any],
    tmp_path: Path,
    steps_before: int,
) -> None:
    copied = tmp_path / "agent"
    shutil.copytree(agent_of(data, source["run_id"]), copied)
    folder, asked = DataFolder(data), iter(range(10_000))
    curriculum = load_curriculum(file)
    start = find_initial_agent(str(copied), folder, curriculum.config)
    request = RunRequest(curriculum, folder, start=start)
    stopped = run_curriculum(
        request, SilentObserver(), should_stop=lambda: next(asked) >= 40 * steps_before
    )
    shutil.rmtree(copied)
    if not steps_before:  # there is no checkpoint to go on from
        for path in (folder.run_folder(stopped.run_id) / "checkpoints").glob("step-*"):
            path.unlink()
    run = find_resumable(stopped.run_id, folder)
    resumed = run_curriculum(
        check_resume(run, run.curriculum(), folder)[0], SilentObserver(), should_stop=lambda: False
    )
    assert resumed.state_sha256 == begun["state_sha256"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("train.algo=maskable_ppo", "its agent learned by ppo, this training by maskable_ppo"),
        ("train.network.layers=[8,8]", "train.network.layers is 8 there, 8 8 here"),
        ("env.rays.middle_count=7", "env.rays.middle_count is 5 there, 7 here"),
        ("env.time_limit=9", "observation time_left goes from 0 to 3 there, from 0 to 9 here"),
    ],
)
def test_an_agent_that_does_not_fit_is_refused_in_a_line_before_anything_is_created(
    data: Path, file: Path, source: dict[str, Any], change: str, reason: str
) -> None:
    before = len(list_runs(DataFolder(data), max_results=1000))
    told = invoke(data, "run", file, "--init-from", source["run_id"], "--set", change, wanted=2)
    assert reason in told.said
    assert len(told.said.splitlines()) == 1
    assert len(list_runs(DataFolder(data), max_results=1000)) == before
    assert not [path for path in (data / "runs").iterdir() if path.name.startswith("opening")]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--init-from", "zz"), "'zz': no such run, and no folder or file with an agent"),
        (("--start-lesson", "3"), "--start-lesson 3: the curriculum has 2 lessons"),
        (("--init-from", "FOLDER"), "is this an agent?"),
    ],
)
def test_a_start_that_is_not_there_is_told(
    data: Path,
    file: Path,
    source: dict[str, Any],
    words: tuple[str, str],
    reason: str,
    tmp_path: Path,
) -> None:
    given = [str(tmp_path) if word == "FOLDER" else word for word in words]
    assert reason in invoke(data, "run", file, *given, wanted=2).said


def test_a_run_with_another_start_is_not_the_one_to_go_on_with(
    data: Path, file: Path, source: dict[str, Any]
) -> None:
    plain = train(data, file, "--seed", 99, *steps(512))
    words = ("--seed", 99, "--init-from", source["run_id"], "--resume")
    begun = train(data, file, *words, *steps(512))
    assert begun["run_id"] != plain["run_id"]
    assert begun["init_from"] == source["run_id"]
    resumed = train(data, file, *words, *steps(1024))
    assert resumed["run_id"] == begun["run_id"]

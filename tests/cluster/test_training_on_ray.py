"""`run --on ray`: the bits of one process, whatever number Ray places and whatever dies."""

import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil
import pytest
from click import ClickException
from click.testing import CliRunner
from ray_project import FILE, WAIT_S, RayProject, trainers, worker

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.history import list_runs
from tests.cli.shared_project import kept

ON_RAY = ("--on", "ray")
ROLLOUTS = 10 * 2048  # steps; more than a dead process's checkpoint can be behind
LONG = ("--set", "train.total_steps=40000000")  # is stopped before
CLUSTER = Path(__file__).with_name("ray_cluster.py")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[RayProject]:
    project = RayProject(tmp_path)
    yield project
    project.end()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is kept of the training in one process."""
    told = RayProject(tmp_path_factory.mktemp("alone")).ended("run", FILE)
    assert told["lessons"][0]["ended_at_step"] is not None
    return kept(told)


class Cluster:
    """A Ray of several machines, all of them this one; its processes have a group of their own."""

    def __init__(self, processors: int) -> None:
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._process = subprocess.Popen(
            [sys.executable, str(CLUSTER), str(processors)],
            env={**RayProject.environment(), **token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders: IO[str] = self._process.stdin
        self._answers: IO[str] = self._process.stdout
        self.variables = {**token, "RAY_ADDRESS": self._answers.readline().strip()}

    def order(self, word: str) -> None:
        """Have it done: a machine of one processor comes, or goes; or the head is killed."""
        self._orders.write(f"{word}\n")
        self._orders.flush()
        assert self._answers.readline() == f"{word} done\n"

    def end(self) -> None:
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.communicate()
        for one in family:
            if one.is_running():
                one.kill()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(3)
    yield cluster
    cluster.end()


def refused(folder: Path, *words: str) -> str:
    """The line that refuses; nothing is made."""
    path = RayProject(folder).path / FILE
    before = sorted(folder.rglob("*"))
    data = ("--data-dir", str(folder / ".aimbot-lab"))
    error = CliRunner().invoke(cli, ["run", str(path), *data, *words], standalone_mode=False)
    assert isinstance(error.exception, ConfigurationError | ClickException), error.output
    assert error.exception.exit_code == 2
    assert sorted(folder.rglob("*")) == before
    return str(getattr(error.exception, "message", error.exception))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([*ON_RAY, "--processes", "2:5"], "--processes 2:5 --on ray: there are only 4 shards"),
        ([*ON_RAY, "--processes", "2", "--set", "train.algo=ppo"], "only hybrid_ppo with its"),
        ([*ON_RAY, "--seeds", "2"], "--seeds can't be used with several processes"),
        (["--on", "moon"], "'moon' is not"),
    ],
)
def test_what_ray_cant_place_is_refused_before_anything_is_made(
    tmp_path: Path, words: list[str], wanted: str
) -> None:
    assert wanted in refused(tmp_path, *words)


def test_ray_that_is_not_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refused(tmp_path, *ON_RAY, "--processes", "2")
    assert line == "--on ray: needs Ray: pip install 'aimbot-lab[ray]'"


def test_one_of_several_processes_asks_ray_for_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "--on can't be used in one of several processes" in refused(tmp_path, *ON_RAY)


@pytest.mark.ray
@pytest.mark.parametrize("address", ["127.0.0.1:9", "auto", "nonsense"])
def test_a_cluster_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    line = refused(tmp_path, *ON_RAY, "--processes", "2")
    assert line.startswith(f"--on ray: RAY_ADDRESS={address}: no answer: ")
    assert "\n" not in line


@pytest.mark.ray
@pytest.mark.parametrize("processes", ["1", "2", "4"])
def test_any_number_of_processes_on_ray_ends_as_one_alone(
    project: RayProject, alone: dict[str, Any], processes: str
) -> None:
    told = project.ended("run", FILE, "--processes", processes, *ON_RAY)
    assert kept(told) == alone
    assert len(list_runs(project.data)) == 1
    assert project.messages.count("training\n") == 1
    assert trainers(project.path) == []


@pytest.mark.ray
def test_a_killed_actor_takes_its_process_along_and_is_mended(
    project: RayProject, alone: dict[str, Any]
) -> None:
    process = project.begin("run", FILE, "--processes", "1", *ON_RAY, "--json")
    run_id, _ = project.wait_for_checkpoint()
    actor = worker(project.path, 0).parent()
    assert actor is not None
    assert "ray::ProcessActor" in "".join(actor.cmdline())
    actor.kill()
    told = project.document(process, 1)
    assert "rank 0 was lost with its place on " in project.messages
    assert (told["run_id"], kept(told)) == (run_id, alone)


@pytest.mark.ray
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_training_goes_on_in_one_process(
    project: RayProject, alone: dict[str, Any], number: signal.Signals
) -> None:
    process = project.begin("run", FILE, "--processes", "2", *ON_RAY, "--json")
    run_id, _ = project.wait_for_checkpoint()
    process.send_signal(number)
    stopped = project.document(process, 130)
    assert (stopped["run_id"], stopped["status"]) == (run_id, "KILLED")
    assert stopped["resumes_at"] == stopped["steps"] > 0
    assert trainers(project.path) == []
    assert kept(project.ended("resume", run_id[:12])) == alone


def waits_for(process: psutil.Process, number: signal.Signals) -> bool:
    """Whether a signal has come to a process that is halted."""
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    (pending,) = re.findall(r"(?m)^ShdPnd:\s+([0-9a-f]+)$", status)
    return bool(int(pending, 16) >> (number - 1) & 1)


@pytest.mark.ray
def test_a_second_stop_request_ends_all_at_once(project: RayProject) -> None:
    process = project.begin("run", FILE, "--processes", "2", *ON_RAY, *LONG)
    project.wait_for_checkpoint()
    halted = worker(project.path, 1)
    halted.suspend()  # so that nobody can save
    process.send_signal(signal.SIGINT)
    project.wait_until(lambda: waits_for(halted, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=WAIT_S)
    assert (process.returncode, output) == (130, "")
    assert trainers(project.path) == []


@pytest.mark.ray
def test_machines_that_go_and_come_change_the_number_of_processes(
    project: RayProject, cluster: Cluster
) -> None:
    words = ("--processes", "2:4", *ON_RAY, *LONG, "--json")
    process = project.begin("run", FILE, *words, **cluster.variables)
    run_id, step = project.wait_for_checkpoint()
    assert "processes: 3 (2 to 4)\n" in project.messages
    cluster.order("add")
    project.wait_until(lambda: "processes: 4 (2 to 4)\n" in project.messages)
    _, step = project.wait_for_checkpoint(after=step + ROLLOUTS)
    cluster.order("remove")
    project.wait_until(lambda: project.messages.count("processes: 3 (2 to 4)\n") == 2)
    project.wait_for_checkpoint(after=step + ROLLOUTS)
    process.send_signal(signal.SIGINT)
    told = project.document(process, 130)
    assert told["run_id"] == run_id
    assert "was lost with its place on " in project.messages
    steps = ("--set", f"train.total_steps={told['steps']}")
    same = project.ended("run", FILE, *steps)
    assert same["steps"] == told["steps"]
    assert same["state_sha256"] == told["state_sha256"]


@pytest.mark.ray
def test_a_lost_head_ends_the_run_with_one_line(project: RayProject, cluster: Cluster) -> None:
    words = ("--processes", "2", *ON_RAY, *LONG)
    process = project.begin("run", FILE, *words, **cluster.variables)
    run_id, _ = project.wait_for_checkpoint()
    cluster.order("behead")
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    lost = [line for line in project.messages.splitlines() if "Ray's head" in line]
    assert len(lost) == 1
    assert lost[0].startswith("error: ")
    assert trainers(project.path) == []
    assert [(run.run_id, run.status) for run in list_runs(project.data)] == [(run_id, "KILLED")]


@pytest.mark.ray
def test_a_machine_without_the_project_is_told(
    project: RayProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aimbot_lab.cluster.connection import connected
    from aimbot_lab.cluster.places import Places

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    missing = str(tmp_path / "missing")
    with connected(1) as ray:
        places = Places(ray, (1, 1), missing, check_stop=lambda: None, report=lambda _line: None)
        with pytest.raises(ConfigurationError, match="every machine needs the project's folder"):
            places.fill(set())

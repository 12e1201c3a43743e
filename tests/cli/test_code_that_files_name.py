"""Agents, runs and curricula name modules and programs: reading them runs none of these."""

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml
from tiny_runs import invoke, invoke_plainly, write

from aimbot_lab.cli.commands import files
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.named_code import TRUST, UntrustedCodeError
from aimbot_lab.panel.server import trainings
from aimbot_lab.panel.server.lab import Lab
from aimbot_lab.panel.server.parts.watch import _Theatre
from aimbot_lab.panel.server.replays import PlayedReplay
from aimbot_lab.panel.server.trainings import Curricula
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.worlds.registry import WORLDS

MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

with open("MARK", "a") as mark:
    mark.write("imported\\n")
gymnasium.register("Marked-v0", CartPoleEnv, max_episode_steps=50)
"""
CURRICULUM = """
name: marked
env: {world: gymnasium, module: marking, id: Marked-v0, num_envs: 4, win: {length_above: 8}}
lessons: [{name: up, completion_criteria: {threshold: 0.9}}]
train: {algo: ppo, total_steps: 256, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""
READ = (
    ("explain", "latest"),
    ("export", "latest", "-o", "out"),
    ("plot", "latest", "-o", "out.png"),
    ("runs",),
)
PLAYED = (
    ("evaluate", "latest", "--episodes", 2, "--no-baselines"),
    ("compare", "latest", "latest", "--episodes", 2),
)
OUTCOMES = (0, 1, 2)


class Project:
    """A folder with a module that leaves a mark whenever it is imported, and a run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.mark = folder / "MARK"
        (folder / "marking.py").write_text(MODULE.replace("MARK", str(self.mark)))
        self.file = write(folder, text=CURRICULUM)

    def artifacts(self) -> Path:
        (run,) = (self.data / "artifacts").iterdir()
        return run / "artifacts"

    def marked_by(self, work: Callable[[], Any]) -> bool:
        """Whether the module was imported, or a program of the folder started, by `work`."""
        self.mark.unlink(missing_ok=True)
        work()
        return self.mark.exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("project"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        patch.setenv(TRUST, "")
        invoke(project.data, "run", project.file, wanted=(0, 1))
        assert project.mark.exists()
    return project


@pytest.fixture
def project(trained: Project, monkeypatch: pytest.MonkeyPatch, forget_module: None) -> Project:
    monkeypatch.chdir(trained.folder)
    return trained


@pytest.fixture
def forget_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is imported anew, as by another process, and what it said is not remembered."""
    monkeypatch.delitem(sys.modules, "marking", raising=False)
    gymnasium.registry.pop("Marked-v0", None)
    monkeypatch.setattr(WORLDS["gymnasium"], "_specs", {})
    for name in ("gymnasium", "pettingzoo", "unity"):
        monkeypatch.setattr(WORLDS[name], "_kept", {})


@pytest.fixture
def foreign(project: Project) -> Iterator[Project]:
    """The run as somebody else gets it: nothing notes that its code once ran here."""
    notes = project.data / "code"
    notes.rename(project.data / "elsewhere")
    yield project
    (project.data / "elsewhere").rename(notes)


@pytest.mark.parametrize("words", PLAYED, ids=lambda words: words[0])
def test_own_runs_are_played_without_being_trusted(project: Project, words: tuple[Any]) -> None:
    assert project.marked_by(lambda: invoke(project.data, *words))


@pytest.mark.parametrize("words", READ, ids=lambda words: words[0])
def test_reading_a_run_of_somebody_else_runs_nothing(foreign: Project, words: tuple[Any]) -> None:
    wanted = (0, 2) if words[0] == "plot" else 0  # the run is too short for a curve
    assert not foreign.marked_by(lambda: invoke(foreign.data, *words, wanted=wanted))


@pytest.mark.parametrize("words", PLAYED, ids=lambda words: words[0])
def test_a_run_of_somebody_else_is_played_once_it_is_trusted(
    foreign: Project, words: tuple[Any]
) -> None:
    found = []
    assert not foreign.marked_by(lambda: found.append(invoke(foreign.data, *words, wanted=2)))
    assert found[0].said.strip() == (
        "env.module: the module marking is not run, because no training in this data folder began "
        "with it; if you trust it, add --trust"
    )
    assert foreign.marked_by(lambda: invoke(foreign.data, *words, "--trust"))


def test_a_run_of_somebody_else_is_not_resumed_unless_it_is_trusted(foreign: Project) -> None:
    more = ("resume", "latest", "--set", "train.total_steps=384")
    assert not foreign.marked_by(lambda: invoke(foreign.data, *more, wanted=2))


def test_notes_that_others_can_write_are_not_believed(project: Project) -> None:
    notes = project.data / "code"
    notes.chmod(0o777)
    try:
        assert not project.marked_by(lambda: invoke(project.data, *PLAYED[0], wanted=2))
    finally:
        notes.chmod(0o700)


@contextmanager
def rewritten(path: Path, text: str) -> Iterator[None]:
    """The file holds `text` until the block ends."""
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def test_other_arguments_of_an_environment_are_other_code(project: Project) -> None:
    resolved = project.artifacts() / "resolved.yaml"
    settings = yaml.safe_load(resolved.read_text())
    settings["env"]["kwargs"] = {"sutton_barto_reward": True}
    with rewritten(resolved, yaml.safe_dump(settings)):
        assert not project.marked_by(lambda: invoke(project.data, *PLAYED[0], wanted=2))


def program(folder: Path) -> Path:
    path = folder / "game.x86_64"
    path.write_text(f"#!/bin/sh\necho started >> {folder / 'MARK'}\n")
    path.chmod(0o755)
    return path


def hostile_envs(folder: Path) -> dict[str, dict[str, Any]]:
    win = {"length_above": 8}
    return {
        "program": {"world": "unity", "file_name": str(program(folder)), "timeout_wait": 2.0},
        "editor": {"world": "unity", "timeout_wait": 2.0},
        "module": {"world": "gymnasium", "module": "marking", "id": "CartPole-v1", "win": win},
        "id": {"world": "gymnasium", "id": "marking:CartPole-v1", "win": win},
        "argument": {
            "world": "gymnasium",
            "id": "CartPole-v1",
            "kwargs": {"inner": ["marking:Marked-v0"]},
            "win": win,
        },
        "function": {"world": "pettingzoo", "id": "marking:parallel_env"},
    }


KINDS = ("program", "editor", "module", "id", "argument", "function")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("says_its_spec", [True, False])
def test_loading_an_agent_runs_nothing(
    project: Project, tmp_path: Path, kind: str, says_its_spec: bool
) -> None:
    folder = shutil.copytree(project.artifacts() / "agent" / "last", tmp_path / "agent")
    description = json.loads((folder / "agent.json").read_text())
    description["env"] = hostile_envs(project.folder)[kind]
    if not says_its_spec:
        del description["spec"]
    (folder / "agent.json").write_text(json.dumps(description))

    def load() -> None:
        if says_its_spec:
            assert load_agent(folder).agent.spec.branches == (2,)
            return
        with pytest.raises(UntrustedCodeError, match="is not run"):
            load_agent(folder)

    assert not project.marked_by(load)


@pytest.mark.parametrize("kind", ["program", "module", "function"])
def test_commands_on_a_hostile_store_run_nothing(
    project: Project, kind: str, tmp_path: Path
) -> None:
    """The curriculum that a run keeps was written by somebody else, and its agent's files."""
    artifacts = project.artifacts()
    resolved, agent = artifacts / "resolved.yaml", artifacts / "agent" / "last" / "agent.json"
    settings, description = yaml.safe_load(resolved.read_text()), json.loads(agent.read_text())
    settings["env"] = description["env"] = hostile_envs(project.folder)[kind]
    with (
        rewritten(resolved, yaml.safe_dump(settings)),
        rewritten(agent, json.dumps(description)),
    ):
        for words in (*READ, *PLAYED, ("record", "latest", "-o", tmp_path / "a.gif")):
            work = (project.data, *words)
            assert not project.marked_by(lambda work=work: invoke(*work, wanted=OUTCOMES)), words


DAMAGED = (
    *(7, {}, {"blocks": [["a" * 1_000_000, "vector", [4]]]}, {"targets": "abc"}),
    *({"blocks": [["a", "vector", [10**9]]]}, {"branches": [10**30]}, {"time_unit": "\x1b[2J"}),
    *({"difficulties": {"task": -4}}, {"agents": 10**18}, {"states": {"size": 10**12}}),
)


def test_a_damaged_spec_is_refused_in_a_line(foreign: Project, tmp_path: Path) -> None:
    folder = shutil.copytree(foreign.artifacts() / "agent" / "last", tmp_path / "agent")
    file, agent = foreign.artifacts() / "spec.json", folder / "agent.json"
    kept, description = json.loads(file.read_text()), json.loads(agent.read_text())
    texts = ["[" * 100_000, "{"]
    for change in DAMAGED:
        spec = {**kept, **change} if isinstance(change, dict) and change else change
        texts.append(json.dumps(spec))
        agent.write_text(json.dumps({**description, "spec": spec}))
        with pytest.raises(LabError, match="the agent's files are damaged") as caught:
            load_agent(folder)
        assert "\n" not in str(caught.value)
    for text in texts:
        with rewritten(file, text):
            said = invoke(foreign.data, "explain", "latest", wanted=1).said
        assert said == "spec.json of the run is damaged: put back the file as the run wrote it"


def test_a_folder_is_only_read_and_a_named_file_is_made(project: Project) -> None:
    def checked(*words: Any) -> str:
        found = invoke_plainly("check", *words)
        return f"{found.output}{found.said}"

    said: list[str] = []
    assert not project.marked_by(lambda: said.append(checked(project.folder)))
    unmade = f"{project.file} (module marking)"
    assert said[-1].splitlines() == [
        "1 file is valid",
        f"only read, their worlds were not made (--make makes them): {unmade}",
    ]
    assert project.marked_by(lambda: said.append(checked(project.file)))
    assert said[-1] == "1 file is valid\n"
    assert project.marked_by(lambda: said.append(checked(project.folder, "--make")))
    assert project.marked_by(
        lambda: invoke_plainly("check", "-", input=CURRICULUM)  # standard input is named, too
    )


@pytest.mark.parametrize(
    ("ends", "what"),
    [
        ("raise SystemExit(3)", "can't be imported: SystemExit: 3 (ending.py:1)"),
        ("import os; os._exit(4)", "ended the process that made its world (exit code 4)"),
        ("import time; time.sleep(60)", "made no world within 2 s"),
    ],
)
def test_code_that_ends_or_hangs_costs_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "MADE_SECONDS", 2)
    (tmp_path / "ending.py").write_text(ends)
    bad = write(tmp_path, "bad.yaml", CURRICULUM.replace("marking", "ending"))
    worse = write(tmp_path, "worse.yaml", "name: worse\n")
    found = invoke_plainly("check", bad, worse, wanted=2)
    first, *others = found.said.splitlines()
    assert first.startswith(f"{bad}:")
    assert first.endswith(f"ending {what}")
    assert [line.startswith(f"{worse}:") for line in others] == [True]


def looks(project: Project, *, seconds: float = 300.0) -> tuple[list[str], dict[str, Any]]:
    """Why the panel showed nothing of the run, each reason once, and the scene it then showed."""
    lab = Lab(DataFolder(project.data), here=project.folder)
    run_id = project.artifacts().parent.name

    async def watched() -> tuple[list[str], dict[str, Any]]:
        theatre, reasons, until = _Theatre(lab, run_id, ""), list[str](), time.monotonic() + seconds
        while time.monotonic() < until:
            found = await theatre._look()
            if "scene" in found:
                return reasons, found
            reasons.append(found["waiting"])
            if "is not run" in found["waiting"] or "ended the process" in found["waiting"]:
                break
        return list(dict.fromkeys(reasons)), {}

    return asyncio.run(watched())


def test_the_panel_plays_code_in_a_process_of_its_own(project: Project) -> None:
    found: list[Any] = []
    assert project.marked_by(lambda: found.append(looks(project)))
    reasons, scene = found[0]
    assert reasons == ["the module marking is started, in a process of its own"]
    assert scene["agent_step"] == 256
    assert "marking" not in sys.modules


def test_the_panel_plays_no_code_of_somebody_else(foreign: Project) -> None:
    found: list[Any] = []
    assert not foreign.marked_by(lambda: found.append(looks(foreign)))
    assert found[0][0][-1].startswith("env.module: the module marking is not run")


@pytest.mark.campaign
def test_code_that_ends_its_process_leaves_the_panel_a_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = project.folder / "marking.py"
    monkeypatch.syspath_prepend(project.folder)
    with rewritten(module, f"{module.read_text()}\nimport os\nos._exit(7)\n"):
        reasons, _ = looks(project)
    assert reasons[-1] == "the module marking ended the process that plays it (exit code 7)"


def test_the_start_page_reads_curricula_and_names_their_code(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "shipped_names", lambda _kind: [])
    found: list[Any] = []
    assert not project.marked_by(lambda: found.extend(Curricula(project.folder).look()))
    (own,) = found
    assert (own.code, own.faults) == ("module marking", [])


def test_a_replay_is_played_where_a_training_began_with_its_code(
    foreign: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = tmp_path / "episode.json"
    invoke(foreign.data, "record", "latest", "-o", replay, "--trust")
    monkeypatch.delenv(TRUST)

    def played(data: Path, wanted: int = 0) -> bool:
        monkeypatch.delitem(sys.modules, "marking", raising=False)
        gymnasium.registry.pop("Marked-v0", None)
        return foreign.marked_by(lambda: invoke(data, "replay", replay, wanted=wanted))

    assert not played(foreign.data, wanted=2)
    shutil.copytree(foreign.data / "elsewhere", tmp_path / "code")
    assert played(tmp_path)
    monkeypatch.delitem(sys.modules, "marking")
    gymnasium.registry.pop("Marked-v0")
    monkeypatch.delenv(TRUST, raising=False)
    with pytest.raises(LabError, match=r"the panel does not load; aimbot-lab replay plays it$"):
        PlayedReplay(replay)

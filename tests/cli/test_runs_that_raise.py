"""A run whose world, network or algorithm raises ends in one line, and keeps what it has."""

import re
from pathlib import Path

import gymnasium
import pytest
from tiny_runs import invoke, write

from aimbot_lab.cli.view import PlainLines
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import TRACEBACK_NAME
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from tests.installed import install

ENV = """
import sys

import gymnasium
import numpy as np


class Steps(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    taken = made = closed = 0

    def __init__(self, how=""):
        self.how = how
        Steps.made += 1

    def close(self):
        Steps.closed += 1
        if Steps.taken > 100 and self.how == "close":
            sys.exit("never")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 4
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.left -= 1
        Steps.taken += 1
        info = {}
        if Steps.taken > 100 and self.how == "raises":
            info = {}["speed"]
        if Steps.taken > 100 and self.how == "exits":
            sys.exit("window closed")
        if Steps.taken > 100 and self.how == "interrupt":
            raise KeyboardInterrupt
        if Steps.taken > 100 and self.how == "info":
            info = None
        over = np.zeros(2) if self.how == "over" else self.left == 0
        return np.zeros(2, np.float32), 1.0, over, False, info


gymnasium.register("Steps-v0", Steps)
"""
CURRICULUM = """
name: steps
env:
  world: gymnasium
  module: raising_env
  id: Steps-v0
  kwargs: {how: HOW}
  num_envs: 4
  win: {terminated: win}
lessons: [{name: one}]
train: {algo: ALGO, total_steps: 512, n_steps: 8, batch_size: 16, network: {NETWORK}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "raising_env.py").write_text(ENV, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    if (env := gymnasium.registry.get("Steps-v0")) is not None:
        env.entry_point.taken = env.entry_point.made = env.entry_point.closed = 0  # type: ignore[union-attr]


def curriculum(
    folder: Path, how: str, algo: str = "ppo", network: str = "layers: [4]", more: str = ""
) -> Path:
    text = CURRICULUM.replace("HOW", f"'{how}'").replace("ALGO", algo)
    return write(folder, text=text.replace("NETWORK", network) + more)


def failed(folder: Path, *how: str) -> str:
    said: str = invoke(folder / "data", "run", curriculum(folder, *how), wanted=1).said
    assert "Traceback" not in said
    return said.splitlines()[-1]


@pytest.mark.parametrize(
    ("how", "code", "what"),
    [
        ("raises", 'info = {}["speed"]', "KeyError: 'speed'"),
        ("exits", 'sys.exit("window closed")', "SystemExit: window closed"),
    ],
)
def test_a_step_that_raises_names_the_line_and_the_run_keeps_its_traceback_and_checkpoint(
    folder: Path, how: str, code: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {run.run_id for run in list_runs(DataFolder(folder / "data"))}
    monkeypatch.setattr(PlainLines, "notice", PlainLines._say)  # which the invoked stream keeps
    said = invoke(folder / "data", "run", curriculum(folder, how), wanted=1).said
    line = said.splitlines()[-1]
    number = 1 + ENV[: ENV.index(code)].count("\n")
    assert line.endswith(f"Steps-v0: its step raised {what} (raising_env.py:{number})")
    data = DataFolder(folder / "data")
    (run,) = (run for run in list_runs(data) if run.run_id not in before)
    assert run.status == "FAILED"
    assert f"run {run.run_id} failed; to resume it: aimbot-lab resume {run.run_id}\n" in said
    assert "Traceback" not in said
    assert list((data.run_folder(run.run_id) / "checkpoints").glob("step-*"))
    (kept,) = (path for path in (folder / "data").rglob(TRACEBACK_NAME) if run.run_id in path.parts)
    assert "Traceback (most recent call last)" in kept.read_text("utf-8")
    assert f"in step\n    {code}" in kept.read_text("utf-8")


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("info", "its step gave an info that is not a dict"),
        ("over", "its step raised ValueError: The truth value of an array .*"),
    ],
)  # fmt: skip
def test_what_a_step_must_not_return_ends_in_one_line(folder: Path, how: str, what: str) -> None:
    line = failed(folder, how)
    assert re.search(f"Steps-v0: {what}$", line), line


@pytest.mark.parametrize(
    ("how", "wanted", "status"),
    [
        ("", 0, "FINISHED"),
        ("exits", 1, "FAILED"),
        ("interrupt", 130, "KILLED"),
    ],
)
def test_environments_are_closed_however_a_run_ends(
    folder: Path, how: str, wanted: int, status: str
) -> None:
    more = "evaluation: {every: 256, episodes: 30}\n"  # in a world of its own
    invoke(folder / "data", "run", curriculum(folder, how, more=more), wanted=wanted)
    env = gymnasium.registry["Steps-v0"].entry_point
    assert env.made == env.closed > 0  # type: ignore[union-attr]
    assert list_runs(DataFolder(folder / "data"))[0].status == status


def test_an_environment_that_ends_the_program_as_it_closes_is_reported_and_harms_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainLines, "notice", PlainLines._say)  # which the invoked stream keeps
    said = invoke(folder / "data", "run", curriculum(folder, "close")).said
    assert len(re.findall(r"Steps-v0: its close raised SystemExit: never \(raising", said)) == 1
    run = list_runs(DataFolder(folder / "data"))[0]
    assert run.status == "FINISHED"
    kept = DataFolder(folder / "data").artifacts / run.run_id
    assert list(kept.rglob("agent.safetensors"))


NETWORK = "tests.training.unruly_learners:UNRULY_NET"
ALGORITHM = "tests.training.unruly_learners:UNRULY_A2C"
LEARNERS = {
    "forward": ("ppo", "kind: unruly_net, how: forward", f"the network unruly_net of {NETWORK} "
                r"raised KeyError: 'no such ray' \(.*unruly_learners\.py:\d+\)"),
    "nan": ("ppo", "kind: unruly_net, how: nan",
            f"the network unruly_net of {NETWORK} gave NaN or infinity"),
    "train": ("unruly_a2c", "layers: [4]", f"the algorithm unruly_a2c of {ALGORITHM} "
              r"raised OSError: no such optimiser \(.*unruly_learners\.py:\d+\)"),
}  # fmt: skip


@pytest.mark.parametrize("how", LEARNERS)
def test_a_network_or_algorithm_that_raises_while_it_learns_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    install(monkeypatch, "networks", "unruly_net", NETWORK)
    install(monkeypatch, "algorithms", "unruly_a2c", ALGORITHM)
    algo, network, what = LEARNERS[how]
    line = failed(folder, "", algo, network)
    assert re.search(f"{what}$", line), line


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("weights", r"ZeroDivisionError \(.*\)"),
        ("layers", r"TypeError: layers must be whole numbers above 0 \(got \(0,\)\)"),
        ("activation", r"TypeError: activation must be tanh or relu \(got 'step'\)"),
        ("fault", r"TypeError: fault must be a text or None \(got 5\)"),
    ],
)
def test_a_network_that_can_not_be_asked_is_refused_where_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str, what: str
) -> None:
    install(monkeypatch, "networks", "unruly_net", NETWORK)
    path = curriculum(folder, "", "ppo", f"kind: unruly_net, how: {how}")
    with pytest.raises(LabError) as caught:
        load_curriculum(path, may_run=always)
    raised = f"the network unruly_net of {NETWORK} raised {what}"
    assert re.search(rf"tiny\.yaml:11:\d+: train\.network: {raised}$", str(caught.value))


@pytest.mark.parametrize("how", ["resolved", "arguments"])
def test_a_network_that_answers_otherwise_begins_no_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    install(monkeypatch, "networks", "unruly_net", NETWORK)
    path = curriculum(folder, "", "ppo", f"kind: unruly_net, how: {how}")
    said = invoke(folder / "none", "run", path, wanted=2).said
    assert f"the network unruly_net of {NETWORK} raised TypeError: " in said.splitlines()[-1]
    assert not list(folder.glob("none/runs/*"))

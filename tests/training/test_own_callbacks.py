"""Callbacks of one's own, from a curriculum and from Python, as stable-baselines3 calls them."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch as th
from click.testing import CliRunner, Result
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from tiny_training import Keeper, Sink, learn, plan

import aimbot_lab
from aimbot_lab.adapters.sb3_envs import make_vec_env
from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.named_code import TRUST
from aimbot_lab.tracking.data_folder import locate_data_folder
from aimbot_lab.tracking.history import find_run
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import recorded_numbers
from aimbot_lab.training.training import Training

MODULE = """
from stable_baselines3.common.callbacks import BaseCallback

open("imported", "w").close()


class Stop(BaseCallback):
    def __init__(self, after, text="x"):
        super().__init__()
        self.after = after
        if after < 0:
            raise ValueError("after must not be negative")

    def _on_step(self):
        self.logger.record("own/calls", self.n_calls)
        return self.num_timesteps < self.after


class Break(BaseCallback):
    def _on_step(self):
        if self.num_timesteps >= 1000:
            raise RuntimeError("no more\\nof this")
        return True


Other = int
"""
CURRICULUM = """
name: mine
env: {num_envs: 16, goto_win_radius: 12, time_limit: 3}
lessons: [{name: one, targets: {goto: 1}}]
train:
  total_steps: 2048
  n_steps: 32
  batch_size: 128
  n_epochs: 1
  network: {layers: [16]}
  callbacks: [{callback: "NAME", kwargs: KWARGS}]
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A module in the working directory; code that tests allow is forgotten after each."""
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv(TRUST, "")
    return name


def written(module: str, name: str, kwargs: str = "{}") -> Path:
    text = CURRICULUM.replace("NAME", f"{module}:{name}").replace("KWARGS", kwargs)
    Path("mine.yaml").write_text(text, encoding="utf-8")
    return Path("mine.yaml")


def command(*words: str) -> Result:
    return CliRunner().invoke(cli, words, standalone_mode=False)


class Seen(BaseCallback):
    """Notes what it may see."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[Any] = []

    def _on_training_start(self) -> None:
        self.noted.append(("start", self.locals["total_timesteps"]))

    def _on_rollout_start(self) -> None:
        self.noted.append(("rollout", self.num_timesteps))

    def _on_step(self) -> bool:
        names = {"actions", "rewards", "dones", "infos", "new_obs"}
        self.noted.append((self.num_timesteps, names <= self.locals.keys()))
        return True

    def _on_training_end(self) -> None:
        self.noted.append("end")


class Bare(Seen):
    """Does not do what the library's class does when it is made."""

    def __init__(self) -> None:
        self.noted = []


class NoNumber:
    """Raises where it is taken for a number."""

    def __float__(self) -> float:
        raise KeyError("nothing")


def test_what_is_recorded_and_no_number_is_left_out() -> None:
    given = {"one": 1, 2: th.tensor(2.0), "text": "3", "far": 10**400, "own": NoNumber()}
    assert recorded_numbers(given) == {"one": 1.0, "2": 2.0}


def learned(algo: str, *callbacks: BaseCallback, **how: Any) -> Any:
    training, sink = Training(plan(algo, total_steps=1024), callbacks=callbacks), Sink()
    return learn(training, sink, **how), sink


@pytest.mark.parametrize("algo", ["dqn", "hybrid_ppo"])
def test_a_callback_sees_what_the_library_shows_one_and_changes_nothing(algo: str) -> None:
    seen, bare = Seen(), learned(algo)[0]
    judge: list[BaseCallback] = []
    if algo != "dqn":  # whose actions are numbered in another way
        games = make_vec_env("goto", num_envs=2)
        judge.append(EvalCallback(games, eval_freq=32, n_eval_episodes=2, verbose=0, warn=False))
    outcome, sink = learned(algo, seen, *judge)
    assert outcome.state_sha256 == bare.state_sha256
    assert seen.noted[:2] == [("start", 1024), ("rollout", 0)]
    assert [one for one in seen.noted if one[1] is True] == [(16 * n, True) for n in range(1, 65)]
    assert seen.noted[-1] == "end"
    judged = [step for step, metrics in sink.logged if "eval/mean_reward" in metrics]
    assert judged == [512, 1024] * len(judge)
    names = {name for _, metrics in sink.logged for name in metrics}
    assert not names & {"time/fps", "rollout/ep_rew_mean"}


def test_a_resumed_training_counts_its_calls_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    keeper, again = Keeper(), Seen()
    learned("ppo", Seen(), links=keeper.links)
    training = Training(plan("ppo", total_steps=1024), callbacks=[again])
    learn(keeper.resumed(training, keeper.checkpoints[1]))
    assert (keeper.checkpoints[1].step, again.n_calls) == (512, 64)


def test_one_that_returns_false_stops_the_run_and_its_records_are_metrics(module: str) -> None:
    path = written(module, "Stop", "{after: 1500}")
    result = aimbot_lab.train(path, data_dir="data")
    assert (result.status, result.steps) == ("KILLED", 1024)  # where the last rollout began
    run = find_run(locate_data_folder(Path("data")), result.run_id)
    assert run.metrics["own/calls"] == 64


def test_one_that_raises_fails_the_run_in_a_line_that_names_it_and_the_run_resumes(
    module: str,
) -> None:
    path = written(module, "Break")
    where = (
        rf"^train\.callbacks\.0: {module}:Break raised RuntimeError: no more \({module}.py:\d+\)$"
    )
    with pytest.raises(ForeignCodeError, match=where):
        aimbot_lab.train(path, data_dir="data")
    (Path(f"{module}.py")).write_text(MODULE.replace(">= 1000", ">= 10_000"), encoding="utf-8")
    sys.modules.pop(module)
    resumed = command("resume", "latest", "--data-dir", "data", "--json")
    assert json.loads(resumed.stdout)["steps"] == 2048


@pytest.mark.parametrize(
    ("name", "kwargs", "what"),
    [
        ("Other", "{}", "has another kind of object as Other: must be derived from"),
        ("Stop", "{}", "Stop: missing a required argument: 'after' (it takes after, text)"),
        ("Stop", "{after: -1}", "Stop can't be made: ValueError: after must not be negative ("),
        (
            "St op",
            "{}",
            "callbacks.0.callback: must be MODULE:CLASS, such as my_callbacks:Progress (got",
        ),
    ],
)
def test_a_wrong_name_or_argument_is_refused_in_a_line_and_nothing_is_created(
    module: str, name: str, kwargs: str, what: str
) -> None:
    path = written(module, name, kwargs)
    with pytest.raises(ConfigurationError) as caught:
        aimbot_lab.train(path, data_dir="data")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(("mine.yaml:11:", "train.callbacks.0:"))
    assert not list(Path().glob("data/runs/*"))


def test_a_file_that_is_only_read_runs_no_callback_and_one_that_is_checked_does(
    module: str,
) -> None:
    path = written(module, "Stop")
    read = command("check", ".")
    assert read.return_value == 0
    assert f"(--make makes them): mine.yaml (code of {module}:Stop)" in read.stderr
    assert not Path("imported").exists()
    checked = command("check", str(path), "--json")
    assert checked.return_value == 2
    assert Path("imported").exists()
    (fault,) = json.loads(checked.stdout)["files"][0]["faults"]
    assert (fault["line"], "missing a required argument" in fault["message"]) == (11, True)


def test_callbacks_of_python_are_checked_before_anything_is_created(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="callbacks: must be a list of stable-baselines3's"):
        aimbot_lab.train("goto", callbacks=Seen(), data_dir=tmp_path / "d")  # type: ignore[arg-type]
    with pytest.raises(LabError, match=r"^callbacks.0: must be a BaseCallback of [^\n]*got 'x'"):
        aimbot_lab.train("goto", callbacks=["x"], data_dir=tmp_path / "d")  # type: ignore[list-item]
    with pytest.raises(LabError, match=r"^callbacks.0: Bare: its __init__ must call super"):
        aimbot_lab.train("goto", callbacks=[Bare()], data_dir=tmp_path / "d")
    assert not list(tmp_path.glob("d/runs/*"))


def test_actors_and_callbacks_exclude_each_other(module: str) -> None:
    path = written(module, "Stop", "{after: 1}")
    with pytest.raises(ConfigurationError, match=r"train.callbacks: can't see the steps that"):
        aimbot_lab.train(path, ["train.algo=hybrid_ppo", "train.actors={number: 2}"], data_dir="d")


def test_a_notebook_sees_how_far_it_has_come_in_a_loop_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a cell, whose streams are replaced, too."""
    path = tmp_path / "short.yaml"
    path.write_text(CURRICULUM.partition("  callbacks")[0], encoding="utf-8")

    async def cell() -> tuple[str, int]:
        given = ["train.total_steps=1024"]
        result = aimbot_lab.train(path, given, progress=True, data_dir=tmp_path / "data")
        return result.status, result.steps

    assert asyncio.run(cell()) == ("FINISHED", 1024)
    assert "step 512 of 1,024  lesson 1/1 'one' win rate" in capsys.readouterr().err

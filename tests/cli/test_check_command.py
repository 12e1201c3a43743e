"""`aimbot-lab check` on files, folders and standard input; faults in words that help a beginner."""

import json
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner, Result
from gymnasium.envs.registration import EnvSpec
from tiny_runs import write

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent_files import BestAgent
from aimbot_lab.worlds.arena.presets import SHIPPED_FILES

GOOD = "name: g\nlessons:\n  - {name: a, targets: {goto: 1}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.yaml", "a.yml", "none.txt"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    return tmp_path


def check(*arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(cli, ["check", *arguments], input=said, standalone_mode=False)


def test_a_folder_stands_for_its_yaml_files_each_once() -> None:
    assert check(".", "b.yaml").stdout == "2 files are valid\n"


def test_a_folder_without_files_is_a_fault(folder: Path) -> None:
    (folder / "empty").mkdir()
    result = check("empty")
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == "empty: the folder holds no *.yaml or *.yml file"


def test_standard_input_is_checked_under_its_own_name() -> None:
    assert check("-", said=GOOD).stdout == "1 file is valid\n"
    result = check("-", said=GOOD.replace("goto", "gotto"))
    assert result.return_value == 2
    assert result.stderr.startswith("<stdin>:3:25: lessons.0.targets.gotto: unknown target")


def test_overrides_are_checked_with_every_file() -> None:
    result = check("a.yml", "b.yaml", "--set", "seed=x")
    assert result.return_value == 2
    assert result.stderr.count("--set seed=x: seed: must be a whole number") == 2


def test_the_document_has_each_fault_by_its_parts(folder: Path) -> None:
    (folder / "b.yaml").write_text(GOOD.replace("name: g", "nam: g"), encoding="utf-8")
    result = check("a.yml", "b.yaml", "no.yaml", "--json")
    assert (result.return_value, result.stderr) == (2, "")
    first, second, third = json.loads(result.stdout)["files"]
    assert first == {"file": "a.yml", "faults": []}
    assert [(one["line"], one["column"]) for one in second["faults"]] == [(1, 1), (1, 1)]
    assert second["faults"][0]["message"] == "nam: unknown key (nearest valid key: name)"
    assert third["faults"] == [
        {"line": None, "column": None, "message": "can't be read: No such file or directory"}
    ]

    (folder / "b.yaml").write_text(GOOD, encoding="utf-8")
    result = check("b.yaml", "--json")
    assert result.return_value == 0
    assert json.loads(result.stdout) == {"schema": 1, "files": [{"file": "b.yaml", "faults": []}]}


def test_a_sweep_is_checked_as_one(folder: Path) -> None:
    sweep = "name: s\nbase: b.yaml\nsearch:\n  env.rewards.facing: {type: float, low: 0, high: 1}\n"
    (folder / "s.yaml").write_text(sweep, encoding="utf-8")
    assert check("s.yaml", "b.yaml").stdout == "2 files are valid\n"
    (folder / "s.yaml").write_text(sweep.replace("facing", "facin"), encoding="utf-8")
    result = check("s.yaml")
    assert result.return_value == 2
    assert result.stderr.startswith("s.yaml:4:3: ")
    assert "env.rewards.facin" in result.stderr


def faults_of(path: Path) -> list[str]:
    """The lines in which the curriculum at `path` is refused."""
    with pytest.raises(ConfigurationError) as refused:
        load_curriculum(path)
    return list(refused.value.faults)


def test_reward_terms_that_are_nested_are_told_by_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nlessons:\n"
        "  - {name: a, targets: {goto: 1}, parameters: {rewards: {win: 3, lose: 1}}}\n"
    )
    (line,) = faults_of(file)
    assert line.endswith(
        "lessons.0.parameters.rewards: each term is a parameter of its own: "
        "rewards.win, rewards.lose"
    )


def test_a_file_of_target_blocks_is_sent_to_its_own_command() -> None:
    for path in SHIPPED_FILES:
        told = CliRunner().invoke(cli, ["check", str(path)]).stderr
        assert told.count("\n") == 1
        assert "presets check" in told


PENDULUM = """
name: pendulum
env: {world: gymnasium, id: Pendulum-v1, num_envs: 4, win: {return_above: -200}}
lessons: [{name: all}]
train: {algo: ALGO, total_steps: 4096, n_steps: 64, batch_size: 128, learning_rate: 1e-3}
"""


def test_the_best_agent_of_a_training_that_passed_all_was_in_its_last_lesson() -> None:
    best = BestAgent()
    best.consider((6, 0.9), {}, step=10, lesson=6)
    assert best.about == {"step": 10, "lesson": 6, "win_rate_lower": 0.9}


@pytest.mark.parametrize("algo", ["dqn", "hybrid_ppo"])
def test_what_chooses_numbers_from_bins_says_so_and_is_fit_to_run(
    tmp_path: Path, algo: str
) -> None:
    text = PENDULUM.replace("ALGO", algo)
    if algo == "dqn":
        text = text.replace("n_steps: 64, ", "")
    told = CliRunner().invoke(cli, ["check", str(write(tmp_path, text=text)), "--json"])
    document = json.loads(told.stdout)
    assert document["files"][0]["faults"] == []
    (note,) = document["notes"]
    assert f"train.algo: {algo} chooses the number of an action from" in note
    assert note.endswith("aim: hybrid acts by a Gaussian")


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo, aim: hybrid"])
def test_gaussians_are_no_bins(tmp_path: Path, algo: str) -> None:
    text = PENDULUM.replace("ALGO", algo)
    told = CliRunner().invoke(cli, ["check", str(write(tmp_path, text=text))])
    assert (told.exit_code, told.stderr) == (0, "")


def test_noise_that_depends_on_the_state_is_refused_where_there_are_choices(tmp_path: Path) -> None:
    text = PENDULUM.replace("ALGO", "ppo, options: {use_sde: true}")
    text = text.replace("Pendulum-v1", "CartPole-v1").replace("-200", "200")
    (line,) = faults_of(write(tmp_path, text=text))
    assert line.endswith(
        "train.options.use_sde: needs continuous actions only; ppo has choices here"
    )


@pytest.mark.parametrize(
    ("algo", "most"),
    [("ppo", 5000.0), ("sac", 5000.0), ("hybrid_ppo, aim: hybrid", 5000.0), ("ppo", 0.0)],
)
def test_a_number_that_a_gaussian_in_its_units_hardly_explores_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algo: str, most: float
) -> None:
    space = gymnasium.spaces.Box(0.0, most, (1,))
    made = partial(gymnasium.wrappers.TransformAction, func=np.asarray, action_space=space)
    name = f"Wide{most:.0f}-v0"  # by which its spec is kept
    spec = EnvSpec(name, lambda: made(gymnasium.make("Pendulum-v1")))
    monkeypatch.setitem(gymnasium.registry, name, spec)
    text = PENDULUM.replace("ALGO", algo).replace("Pendulum-v1", name)
    if algo == "sac":
        text = text.replace("n_steps: 64, ", "")
    told = CliRunner().invoke(cli, ["check", str(write(tmp_path, text=text)), "--json"])
    document = json.loads(told.stdout)
    assert document["files"][0]["faults"] == []
    named = [note for note in document.get("notes", ()) if "action_0 goes from 0 to 5000:" in note]
    assert len(named) == (algo == "ppo" and most > 0)
    assert "RescaleAction" not in told.stdout or named

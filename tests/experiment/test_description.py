"""What a run is called and marked with."""

import subprocess
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.description import (
    describe_run,
    flat_settings,
    git_tags,
    harmless_settings,
)
from aimbot_lab.tracking.opening import RunDescription

TEXT = """
name: one
lessons:
  - name: only
    targets: {goto: 1}
train: {algo: hybrid_ppo, network: {layers: [32, 16]}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path / "one.yaml"


def described(file: Path, *overrides: str, name: str | None = None) -> RunDescription:
    return describe_run(load_curriculum(file, overrides), name)


def test_a_run_without_a_name_is_told_by_its_seed(file: Path) -> None:
    assert described(file, "seed=4").name == "one seed 4"
    assert described(file, "seed=4", name="mine").name == "mine"


def test_parameters_hold_defaults_by_the_keys_of_set_at_most_a_hundred(file: Path) -> None:
    params = described(file, "env.rays.tags=one_hot").params
    assert params["train.network.layers"] == "32 16"
    assert params["env.rays.tags"] == "one_hot"
    usual = {"train.aim": "bins", "train.clip_range": "0.2", "train.gae_lambda": "0.95"}
    assert usual.items() <= params.items()
    assert params["train.masks"] == "False"
    assert params["env.rewards.in_area"] == "5.0"
    assert len(params) <= 100


def test_parameters_hold_the_thresholds_of_the_last_lessons(tmp_path: Path) -> None:
    lessons = "".join(
        f"  - {{name: l{number}, targets: {{goto: 1}}, "
        f"completion_criteria: {{threshold: 0.{number + 10}}}}}\n"
        for number in range(40)
    )
    (tmp_path / "many.yaml").write_text(f"name: many\nlessons:\n{lessons}", encoding="utf-8")
    params = described(tmp_path / "many.yaml").params
    assert params["lessons.39.completion_criteria.threshold"] == "0.49"
    assert params["lessons"] == "40"
    assert len(params) <= 100


def test_evaluation_while_training_makes_no_other_kind_of_run(file: Path) -> None:
    kinds = {
        described(file, *overrides).tags["lab.config"]
        for overrides in ((), ("evaluation.every=1000",))
    }
    assert len(kinds) == 1


def test_lists_of_numbers_are_one_setting_and_others_go_by_index() -> None:
    assert dict(flat_settings({"a": {"b": (1, 2.5)}})) == {"a.b": "1 2.5"}
    assert dict(flat_settings({"presets": ("a", "b")})) == {"presets.0": "a", "presets.1": "b"}


def test_runs_that_differ_in_their_seed_alone_are_of_one_kind(file: Path) -> None:
    kinds = [
        described(file, *overrides).tags["lab.config"]
        for overrides in ((), ("seed=2",), ("tracking.experiment=x",), ("train.gamma=0.98",))
    ]
    assert kinds[0] == kinds[1] == kinds[2] != kinds[3]


def kinds(file: Path, *overrides: str) -> set[str]:
    """The tags of runs without and with each of `overrides`."""
    runs = ((), *((one,) for one in overrides))
    return {described(file, *one).tags["lab.config"] for one in runs}


def test_names_and_threads_that_change_no_result_make_no_other_kind(file: Path) -> None:
    harmless = ("name=two", "env.threads=2", "train.torch_threads=3")
    assert len(kinds(file, *harmless)) == 1
    assert set(map(key_of, harmless)) == harmless_settings(load_curriculum(file).config.train)


def test_threads_of_torch_make_another_kind_where_torch_learns(file: Path) -> None:
    torch = described(file, "train.engine=torch").tags["lab.config"]
    three = described(file, "train.engine=torch", "train.torch_threads=3").tags["lab.config"]
    assert torch != three


def key_of(override: str) -> str:
    return override.partition("=")[0]


def test_a_commit_and_whether_files_differ_from_it_are_told(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert git_tags(tmp_path / "missing") == {}
    git("init", "--quiet")
    assert git_tags(tmp_path) == {}
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "--quiet", "-m", "one")
    (tmp_path / "new").write_text("untracked")
    commit = git("rev-parse", "HEAD")
    told = git_tags(tmp_path)
    assert (told["mlflow.source.git.commit"], told["lab.git_dirty"]) == (commit, "false")
    (tmp_path / "a").write_text("2")
    assert git_tags(tmp_path)["lab.git_dirty"] == "true"

"""An installed package brings a world, a network and an algorithm: every command knows them."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "package"
CURRICULUM = """
name: carts
env: {world: carts, steps: 15}
lessons:
  - name: stand
    completion_criteria: {threshold: 0.3, min_lesson_length: 20}
train:
  algo: plain_a2c
  total_steps: 1_000
  n_steps: 16
  use_rms_prop: false
  network: {kind: silu, units: 16}
"""
SWEEP = """
name: optimiser
base: carts.yaml
search: {train.use_rms_prop: {type: categorical, choices: [true, false]}}
objective: {measure: win_rate, episodes: 200}
trials: 2
"""
WRONG = {
    "use_rms_prop: false": (
        "use_rms_prob: false",
        "11:3: train.use_rms_prob: unknown key (nearest valid key: use_rms_prop)",
    ),
    "silu": ("siren", "12:19: train.network.kind: must be 'mlp' or 'silu' (got 'siren')"),
    "units: 16": ("units: 0", "12:32: train.network.units: must be at least 1 (got 0)"),
    "units:": (
        "layers:",
        "12:25: train.network.layers: unknown key of network silu (valid keys: kind, units)",
    ),
    "steps: 15": ("steps: 0", "3:28: env.steps: must be at least 1 (got 0)"),
}
FILES = [f"wrong{number}.yaml" for number in range(len(WRONG))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory, and beside it the package, installed in `site`."""
    folder = tmp_path_factory.mktemp("project")
    build = f"from setuptools import build_meta as b; print(b.build_wheel({str(folder)!r}))"
    source = folder / "source"
    source.mkdir()
    for file in ("pyproject.toml", "lab_extras.py"):
        (source / file).write_bytes((PACKAGE / file).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=source, capture_output=True, text=True, check=True
    )
    zipfile.ZipFile(folder / done.stdout.splitlines()[-1]).extractall(folder / "site")
    (folder / "carts.yaml").write_text(CURRICULUM, encoding="utf-8")
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    for number, (old, (new, _)) in enumerate(WRONG.items()):
        text = CURRICULUM.replace(old, new, 1)
        (folder / f"wrong{number}.yaml").write_text(text, encoding="utf-8")
    return folder


STORY = """
import json
from tests.cli.tiny_runs import invoke_plainly
assert not invoke_plainly("check", "carts.yaml", "sweep.yaml").said
refused = invoke_plainly("check", *FILES, wanted=2).said
definitions = json.loads(invoke_plainly("schema", "curriculum").output)["$defs"]
hard = "lessons.0.completion_criteria.threshold=0.99", "env.steps=60"
invoke_plainly("run", "carts.yaml", "--set", hard[0], "--set", hard[1], wanted=1)
players = invoke_plainly("evaluate", "latest", "--episodes", 2, "--json").document["players"]
more = "resume", "latest", "--set", "train.total_steps=2000", "--json"
steps = invoke_plainly(*more, wanted=1).document["steps"]
print(json.dumps([definitions, refused, list(players), steps]))
"""


def call(folder: Path, *words: str, site: str = "site") -> tuple[int, str, str]:
    return started(folder, "-m", "aimbot_lab", *words, site=site)


def started(folder: Path, *words: str, site: str = "site") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder / site), str(PACKAGE.parents[1])]),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def story(folder: Path) -> list[Any]:
    """What STORY prints."""
    code, output, messages = started(folder, "-c", STORY.replace("FILES", repr(FILES)))
    assert code == 0, messages
    found: list[Any] = json.loads(output)
    return found


def test_their_settings_are_refused_as_those_of_the_built_in_ones_are(story: list[Any]) -> None:
    lines = story[1].splitlines()
    for file, line, (_, wanted) in zip(FILES, lines, WRONG.values(), strict=True):
        assert line.startswith(f"{file}:{wanted}")


def test_a_training_of_them_runs_is_evaluated_and_resumed(story: list[Any]) -> None:
    _, _, players, steps = story
    assert {"sampled", "random"} <= set(players)
    assert 2000 <= steps < 2200


def test_the_schema_knows_their_settings(story: list[Any]) -> None:
    definitions = story[0]
    assert {"CartsSettings", "SiluSettings", "A2CSettings"} <= definitions.keys()
    algorithms = definitions["TrainSettings"]["properties"]["algo"]["anyOf"][0]["enum"]
    assert algorithms[-1] == "plain_a2c"


def test_without_the_package_they_are_refused_in_a_line_each(folder: Path) -> None:
    code, _, messages = call(folder, "check", "carts.yaml", site="nowhere")
    assert code == 2
    assert messages.splitlines() == [
        "carts.yaml:3:14: env.world: must be 'arena', 'duel', 'gorge', 'gymnasium', 'pettingzoo' "
        "or 'unity' (got 'carts')",
        "carts.yaml:8:9: train.algo: must be 'ppo', 'a2c', 'maskable_ppo', 'recurrent_ppo', "
        "'trpo', 'dqn', 'qrdqn', 'sac', 'td3', 'ddpg', 'tqc', 'crossq', 'ars', 'hybrid_ppo' or "
        "'q_learning' (got 'plain_a2c')",
        "carts.yaml:12:19: train.network.kind: must be 'mlp' (got 'silu')",
    ]

"""A world that an installed package brings by an entry point is known to every command."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.tiny_runs import invoke, invoke_plainly
from tests.installed import install, said_by

CURRICULUM = """
name: walk
env: {world: walk, num_envs: 8}
lessons:
  - name: right
    completion_criteria: {threshold: 0.2, min_lesson_length: 30}
train: {algo: hybrid_ppo, total_steps: 40_000, n_steps: 16, batch_size: 64, learning_rate: 0.003}
seed: 4
"""
STRANGER = "tests.worlds.stranger"
WALK = f"{STRANGER}:WALK"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a curriculum."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk.yaml").write_text(CURRICULUM, encoding="utf-8")
    return tmp_path


def test_commands_work_in_a_world_of_several_agents(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, "worlds", "walk", WALK)
    text = CURRICULUM.replace("num_envs: 8", "num_envs: 8, agents: 2")
    text = text.replace("n_steps: 16", "n_steps: 16, reward_scale: running")
    (folder / "race.yaml").write_text(text, encoding="utf-8")
    done = invoke(folder, "run", "race.yaml", "--json").document
    assert done["status"] == "FINISHED"
    assert done["steps"] % (2 * 8) == 0  # each step of the world is one of every seat
    assert "right" in invoke(folder, "explain", "latest").output
    assert "sampled" in invoke(folder, "evaluate", "latest", "--episodes", 20).output


def test_gymnasium_knows_the_ids_of_a_world_that_a_package_brings(folder: Path) -> None:
    about = folder / "site" / "stranger-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[aimbot_lab.worlds]\nwalk = {WALK}\n")
    code = (
        "import gymnasium\n"
        "envs = gymnasium.make_vec('aimbot_lab.envs:stranger/Walk-v0', num_envs=3)\n"
        "print(envs.reset(seed=1)[0].shape, envs.unwrapped.world.num_envs)\n"
    )
    paths = os.pathsep.join([str(folder / "site"), str(Path(__file__).parents[2])])
    said = said_by("-c", code, PYTHONPATH=paths, OMP_NUM_THREADS="1")
    assert said.endswith(" 3\n")


def refused(*words: object) -> list[str]:
    """The lines of what `aimbot-lab check` refuses, without places in a package's code."""
    said = invoke_plainly("check", *words, wanted=2).said.strip()
    return re.sub(r"\(\S*stranger\.py:\d+\)", "(FILE:LINE)", said).splitlines()


def test_a_broken_package_hurts_no_file_that_does_not_use_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, "worlds", "x", "no_such_module:X")
    install(monkeypatch, "worlds", "arena", WALK)
    assert invoke_plainly("check", "goto").said == ""
    told = invoke_plainly("schema", "curriculum")
    assert "ArenaSettings" in json.loads(told.output)["$defs"]
    assert [line.partition(" can't be loaded")[0] for line in told.said.splitlines()] == [
        "warning: the world x of no_such_module:X",
        "warning: the world arena: an installed package brings one of that name, which is not used",
    ]


def write_broken(folder: Path, monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    """A package with a world of each kind, and a curriculum for each."""
    for kind in kinds:
        module = "no_such_module" if kind == "lost" else STRANGER
        install(monkeypatch, "worlds", kind, f"{module}:{kind.upper()}")
        text = CURRICULUM.replace("world: walk", f"world: {kind}")
        (folder / f"{kind}.yaml").write_text(text, encoding="utf-8")


def test_a_world_that_is_not_there_has_no_spec_or_can_t_be_made_is_refused_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_broken(folder, monkeypatch, "lost", "no_spec", "wrong_spec", "not_made")
    spec = f"3:14: env.world: the spec of the world wrong_spec of {STRANGER}:WRONG_SPEC"
    assert refused("lost.yaml", "no_spec.yaml", "wrong_spec.yaml") == [
        "lost.yaml:3:14: env.world: the world lost of no_such_module:LOST can't be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'",
        f"no_spec.yaml:3:14: env.world: the world no_spec of {STRANGER}:NO_SPEC has no spec: "
        "RuntimeError: not today (FILE:LINE)",
        f"wrong_spec.yaml:{spec}: agents must be at least 1 (got 0)",
        f"wrong_spec.yaml:{spec}: every branch must have at least one choice (got (0,))",
    ]
    said = invoke(folder / "none", "run", "not_made.yaml", wanted=2).said
    assert (
        f"the world not_made of {STRANGER}:NOT_MADE can't be made: RuntimeError: not today" in said
    )
    assert not list((folder / "none").rglob("*.yaml"))


def test_a_world_that_raises_while_it_is_played_ends_the_run_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_broken(folder, monkeypatch, "steps")
    said = invoke(folder / "none", "run", "steps.yaml", wanted=1).said
    assert f"the world steps of {STRANGER}:STEPS raised RuntimeError: not today (" in said

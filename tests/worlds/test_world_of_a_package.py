"""A world that an installed package brings by an entry point is known to every command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CURRICULUM = """
name: walk
env: {world: walk, num_envs: 8}
lessons:
  - name: right
    completion_criteria: {threshold: 0.6, min_lesson_length: 30}
train: {algo: hybrid_ppo, total_steps: 40_000, n_steps: 32, batch_size: 64, learning_rate: 0.003}
seed: 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory beside an installed package `stranger`."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "walk.yaml").write_text(CURRICULUM, encoding="utf-8")
    about = folder / "site" / "stranger-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[aimbot_lab.worlds]\nwalk = tests.worlds.stranger:WALK\n"
    )
    return folder


def python(folder: Path, *words: str, site: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder / site), str(REPOSITORY)])
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def call(folder: Path, *words: str, site: str = "site") -> tuple[int, str, str]:
    done = python(folder, "-m", "aimbot_lab", *words, site=site)
    return done.returncode, done.stdout, done.stderr


def test_commands_know_a_world_that_a_package_brings(folder: Path) -> None:
    code, output, messages = call(folder, "check", "walk.yaml")
    assert code == 0, messages
    code, output, messages = call(folder, "run", "walk.yaml", "--json")
    assert code == 0, messages
    assert json.loads(output)["status"] == "FINISHED"
    code, output, messages = call(folder, "evaluate", "latest", "--episodes", "20", "--json")
    assert code == 0, messages
    assert json.loads(output)["players"]["sampled"]["overall"]["win_rate"] > 0.6
    code, output, _ = call(folder, "schema", "curriculum")
    assert code == 0
    assert "WalkSettings" in json.loads(output)["$defs"]


@pytest.mark.slow
def test_commands_work_in_a_world_of_several_agents(folder: Path) -> None:
    text = CURRICULUM.replace("num_envs: 8", "num_envs: 8, agents: 2").replace("0.6", "0.2")
    text = text.replace("n_steps: 32", "n_steps: 16, reward_scale: running")
    (folder / "race.yaml").write_text(text, encoding="utf-8")
    code, output, messages = call(folder, "run", "race.yaml", "--json")
    assert code == 0, messages
    done = json.loads(output)
    assert done["status"] == "FINISHED"
    assert done["steps"] % (2 * 8) == 0  # each step of the world is one of every seat
    for command in (["explain", "latest"], ["evaluate", "latest", "--episodes", "20"]):
        code, output, messages = call(folder, *command)
        assert code == 0, messages
        assert "right" in output


def test_gymnasium_knows_the_ids_of_a_world_that_a_package_brings(folder: Path) -> None:
    code = (
        "import gymnasium\n"
        "envs = gymnasium.make_vec('aimbot_lab.envs:stranger/Walk-v0', num_envs=3)\n"
        "print(envs.reset(seed=1)[0].shape, envs.unwrapped.world.num_envs)\n"
    )
    done = python(folder, "-c", code, site="site")
    assert done.stderr == ""
    assert done.stdout.endswith(" 3\n")


def test_without_the_package_its_world_is_refused_with_those_there_are(folder: Path) -> None:
    code, _, messages = call(folder, "check", "walk.yaml", site="nowhere")
    assert code == 2
    assert messages.strip() == (
        "walk.yaml:3:14: env.world: must be 'arena', 'duel', 'gorge', 'gymnasium' or 'unity' "
        "(got 'walk')"
    )


def add_package(folder: Path, site: str, name: str, entry_points: str) -> None:
    about = folder / site / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)


def test_a_world_of_a_broken_package_is_refused_in_one_line_where_it_is_named(
    folder: Path,
) -> None:
    add_package(folder, "broken", "broken", "[aimbot_lab.worlds]\nwalk = no_such_module:X\n")
    code, _, messages = call(folder, "check", "walk.yaml", site="broken")
    assert code == 2
    assert messages.strip() == (
        "walk.yaml:3:14: env.world: the world walk of no_such_module:X can't be loaded: "
        "ModuleNotFoundError: No module named 'no_such_module'"
    )


def test_a_broken_package_hurts_no_file_that_does_not_use_it(folder: Path) -> None:
    entry_points = "[aimbot_lab.worlds]\nx = no_such_module:X\narena = tests.worlds.stranger:WALK\n"
    add_package(folder, "broken_beside", "broken", entry_points)
    code, _, messages = call(folder, "check", "goto", site="broken_beside")
    assert (code, messages) == (0, "")
    code, output, messages = call(folder, "schema", "curriculum", site="broken_beside")
    assert code == 0
    assert "ArenaSettings" in json.loads(output)["$defs"]
    assert [line.partition(" can't be loaded")[0] for line in messages.splitlines()] == [
        "warning: the world x of no_such_module:X",
        "warning: the world arena: an installed package brings one of that name, which is not used",
    ]


BROKEN = "tests.worlds.broken_strangers"


def without_places(messages: str) -> list[str]:
    """The lines, with the places in a package's code left out."""
    pattern = r"\(\S*broken_strangers\.py:\d+\)"
    return re.sub(pattern, "(FILE:LINE)", messages).splitlines()


def write_broken(folder: Path, kinds: tuple[str, ...]) -> None:
    """A package with a world of each kind in `broken_worlds`, and a curriculum for each."""
    lines = [f"{kind} = {BROKEN}:{kind.upper()}" for kind in kinds]
    entry_points = "\n".join(["[aimbot_lab.worlds]", *lines, ""])
    add_package(folder, "broken_worlds", "broken", entry_points)
    for kind in kinds:
        text = CURRICULUM.replace("world: walk", f"world: {kind}")
        (folder / f"{kind}.yaml").write_text(text, encoding="utf-8")


def test_a_world_that_has_no_spec_or_can_t_be_made_is_refused_in_one_line(folder: Path) -> None:
    write_broken(folder, ("no_spec", "wrong_spec", "not_made", "steps"))
    spec = f"3:14: env.world: the spec of the world wrong_spec of {BROKEN}:WRONG_SPEC"
    code, _, messages = call(
        folder, "check", "no_spec.yaml", "wrong_spec.yaml", site="broken_worlds"
    )
    assert code == 2
    assert without_places(messages) == [
        f"no_spec.yaml:3:14: env.world: the world no_spec of {BROKEN}:NO_SPEC has no spec: "
        "RuntimeError: not today (FILE:LINE)",
        f"wrong_spec.yaml:{spec}: agents must be at least 1 (got 0)",
        f"wrong_spec.yaml:{spec}: every branch must have at least one choice (got (0,))",
    ]
    code, _, messages = call(
        folder, "run", "not_made.yaml", "--data-dir", "none", site="broken_worlds"
    )
    assert code == 2
    what = f"the world not_made of {BROKEN}:NOT_MADE can't be made"
    assert without_places(messages)[-1].endswith(f"{what}: RuntimeError: not today (FILE:LINE)")
    assert "Traceback" not in messages
    assert not list((folder / "none").rglob("*.yaml"))


def test_a_world_that_raises_while_it_is_played_ends_the_run_in_one_line(folder: Path) -> None:
    code, _, messages = call(
        folder, "run", "steps.yaml", "--data-dir", "none", site="broken_worlds"
    )
    assert code == 1
    what = f"the world steps of {BROKEN}:STEPS raised RuntimeError: not today (FILE:LINE)"
    assert without_places(messages)[-1] == f"error: {what}"
    assert "Traceback" not in messages

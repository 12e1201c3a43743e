"""What a package's world must not do is refused in one line that names it and the place."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.world import BatchWorld, Scenario, step_buffers
from aimbot_lab.worlds.registry import make_world, type_of
from tests.installed import install
from tests.worlds.unruly import UnrulySettings

SHOWN = "the world unruly of tests.worlds.unruly:UNRULY"
HERE = r"\(tests/worlds/unruly\.py:\d+\)"
CURRICULUM = """
name: walk
env: {world: unruly, how: HOW}
lessons: [{name: right, targets: {right: 1}, parameters: {wind: 1}}]
train: {algo: ppo, total_steps: 512, n_steps: 8, batch_size: 8}
"""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "worlds", "unruly", "tests.worlds.unruly:UNRULY")
    monkeypatch.chdir(Path(__file__).parents[2])


AT_CHECK = {
    "targets raise": rf"its targets raised RuntimeError: not today {HERE}",
    "targets none": r"its targets gave None; it must give names, each with a number from 0 on",
    "targets of no number": r"its targets gave \{'right': '0'\}; it must give names, each .*",
    "other targets": r"its targets gave \{'left': 0\}; it must give the difficulties of its .*",
    "baselines raise": rf"its baselines raised ZeroDivisionError {HERE}",
    "baselines none": r"its baselines gave None; it must give players by their names",
    "parameters": r"its parameters gave \['wind'\]; it must give Bounds by their names, or None",
    "reward_bound": r"its reward_bound gave nan; it must give a finite number",
}


@pytest.mark.parametrize("how", AT_CHECK)
def test_what_is_wrong_before_a_world_is_made_is_refused_where_the_world_is_named(
    tmp_path: Path, how: str
) -> None:
    (line,) = refused(tmp_path, how)
    assert re.fullmatch(rf".*c\.yaml:3:14: env\.world: {SHOWN}:? {AT_CHECK[how]}", line), line


def test_settings_and_parameters_that_raise_are_refused_at_their_place(tmp_path: Path) -> None:
    (line,) = refused(tmp_path, "settings raise")
    what = rf"env\.world: the settings of {SHOWN} raised KeyError: 'not today' {HERE}"
    assert re.search(rf":3:14: {what}$", line), line
    (line,) = refused(tmp_path, "parameter_fault raises")
    what = rf"lessons\.0\.parameters\.wind: {SHOWN} its parameter_fault raised IndexError: wind"
    assert re.search(rf": {what} {HERE}$", line), line


def refused(folder: Path, how: str) -> tuple[str, ...]:
    (folder / "c.yaml").write_text(CURRICULUM.replace("HOW", how), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(folder / "c.yaml")
    return tuple(caught.value.faults)


def test_a_world_of_other_rows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"its make gave rows 5; it must give 4$"):
        world_that("rows")


IN_STEP = {
    "step raises": rf"its step raised KeyError: 'nothing' {HERE}",
    "nan": r"its step gave observation place as nan \(seat 1\)",
    "last nan": r"its step gave observation place as -inf \(seat \d\)",
    "reward": r"its step gave a reward of inf \(seat 2\)",
    "nothing": "its step gave None in the place of an EpisodeBatch",
    "running": r"its step gave running_order of shape \(3,\) instead of \(4,\)",
    "unsaid": r"its step gave episodes of the seats \[\]; finished is True at \[0, 1, 2, 3\]",
    "column": "its step gave episodes without the column farthest",
    "column's shape": r"its step gave episodes with the column farthest of shape .*",
    "terms": r"its step gave episodes with terms of shape \(\d, 0\) instead of \(\d, 1\)",
    "length": "its step gave episodes with length as float64 in the place of whole numbers",
    "outcome": r"its step gave outcomes \[\d.*\]; allowed are -1, 0 and 1",
    "cell": r"its step gave an episode of \('left', 0\), which is no Cell of its spec",
    "row": r"its step gave episodes with row as \[0.*\] in the place of an array",
    "reset raises": rf"its reset raised OSError: no such level {HERE}",
    "reset gives nan": r"its reset gave observation steps as nan \(seat 0\)",
}


@pytest.mark.parametrize("how", IN_STEP)
def test_what_a_world_raises_or_gives_ends_in_one_line(how: str) -> None:
    """As a failed run: in a sweep it fails its trial alone."""
    with pytest.raises(RunFailedError) as caught:
        played(world_that(how))
    assert re.fullmatch(f"{SHOWN}: {IN_STEP[how]}", str(caught.value)), str(caught.value)
    assert caught.value.exit_code == 1


def test_an_interrupt_within_a_step_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        played(world_that("interrupt"))


def test_a_baseline_that_raises_is_named() -> None:
    settings = UnrulySettings(how="player raises")
    with pytest.raises(
        RunFailedError, match=rf"{SHOWN}: its baseline mine raised IndexError: .* {HERE}"
    ):
        type_of(settings).baselines(settings)["mine"](make_world(settings), 3)


def test_a_checked_world_is_the_package_s_own_in_all_else() -> None:
    world: Any = world_that("")
    world.keep_endings = True
    assert world.inner.keep_endings is True
    assert world.place.shape == (1, 4)
    assert played(world) > 0


def world_that(how: str) -> BatchWorld:
    world = make_world(UnrulySettings(how=how))
    world.set_scenario(Scenario({"right": 1.0}))
    return world


def played(world: BatchWorld, steps: int = 40) -> int:
    """How many episodes end in so many steps."""
    buffers, act = step_buffers(world), RandomAgent(world.spec, 0)
    world.reset(1, buffers.observations)
    starts = np.ones(world.num_envs, np.bool_)
    return sum(
        len(world.step(act(buffers.observations, starts), buffers).cell) for _ in range(steps)
    )

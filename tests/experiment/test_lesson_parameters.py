"""Environment parameters of a lesson: numbers and samplers, in files and by --set."""

from pathlib import Path

import numpy as np
import pytest
from broken_curriculum import FITS, GOOD, KINDS, faults, with_parameters

from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.foundation.settings import (
    CONSTANT,
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
    UniformParameters,
)
from aimbot_lab.worlds.arena.allocate import preset_tables
from aimbot_lab.worlds.arena.presets import SHIPPED_FILES, load_presets
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import DIFFICULTIES, parameter_values, scenario_tables

SAMPLED = """{
  rewards.win: 10,
  move_speed: {sampler_type: uniform, sampler_parameters: {min_value: 4, max_value: 6, seed: 3}},
  mouse_factor: {sampler_type: gaussian, sampler_parameters: {mean: 0.08, st_dev: 1e-7}},
  gun_range: {sampler_type: multirangeuniform, sampler_parameters: {intervals: [[5, 9], [20, 90]]}},
  spin_rate: {sampler_type: uniform},
  facing_distance: {sampler_type: gaussian, sampler_parameters: {}}}"""
READ = {
    "rewards.win": 10.0,
    "move_speed": Uniform(
        sampler_parameters=UniformParameters(min_value=4.0, max_value=6.0, seed=3)
    ),
    "mouse_factor": Gaussian(sampler_parameters=GaussianParameters(mean=0.08, st_dev=1e-7)),
    "gun_range": MultiRangeUniform(
        sampler_parameters=MultiRangeUniformParameters(intervals=((5.0, 9.0), (20.0, 90.0)))
    ),
    "spin_rate": Uniform(
        sampler_parameters=UniformParameters(min_value=0.0, max_value=1.0, seed=None)
    ),
    "facing_distance": Gaussian(sampler_parameters=GaussianParameters(mean=1.0, st_dev=1.0)),
}
SPEED = "lessons.0.parameters.move_speed"


# The value of move_speed in line 9, from column 30, and the lines that follow.
WRONG_VALUES = [
    ("x", f"9:30: {SPEED}: must be a number or a sampler (got 'x')"),
    ("-3", f"9:30: {SPEED}: must lie between 0 and 1000 (got -3)"),
    ("{sampler_type: unifrom}", f"9:45: {SPEED}.sampler_type: must be {KINDS} (got 'unifrom')"),
    (
        "{sampler_type: uniform, sampler_parameters: {min_value: x, max_val: 6}}",
        f"9:86: {SPEED}.sampler_parameters.min_value: must be a number (got 'x')",
        f"9:89: {SPEED}.sampler_parameters.max_val: unknown key (nearest valid key: max_value)",
    ),
    (
        "{sampler_type: uniform, sampler_parameters: {min_value: 6, max_value: 4}}",
        f"9:86: {SPEED}.sampler_parameters.min_value: must not be above max_value (got 6 and 4)",
    ),
    (
        "{sampler_type: multirangeuniform, sampler_parameters: {intervals: [[4, 5, 6], 7]}}",
        f"9:97: {SPEED}.sampler_parameters.intervals.0: must hold 2 values (got 3)",
        f"9:108: {SPEED}.sampler_parameters.intervals.1: must be a list (got 7)",
    ),
    (
        "{sampler_type: multirangeuniform, sampler_parameters: {intervals: [[4, 5], [-2, 1]]}}",
        f"9:30: {SPEED}: must lie between 0 and 1000 (got -2 to 5)",
    ),
]

# The parameters in line 9, from column 17, and the line that follows.
WRONG_PARAMETERS = [
    (
        "{mov_speed: {sampler_type: uniform}}",
        "9:18: lessons.0.parameters.mov_speed: unknown environment parameter"
        " (nearest valid key: move_speed)",
    ),
    (
        "{rays.range: 101}",
        "9:30: lessons.0.parameters.rays.range: must not exceed env.rays.range,"
        " which bounds the observation (100)",
    ),
    (
        "{floor_size: 26, block_gap_to_walls: 3}",
        f"9:17: lessons.0.parameters: floor_size must be at least 29 with these gaps, {FITS}"
        " (got 26)",
    ),
]


pytestmark = pytest.mark.usefixtures("here")


def loaded(text: str) -> LoadedCurriculum:
    Path("c.yaml").write_text(text, encoding="utf-8")
    return load_curriculum("c.yaml")


def test_a_parameter_is_a_number_or_a_sampler_with_the_defaults_of_ml_agents() -> None:
    assert loaded(with_parameters(SAMPLED)).config.lessons[0].parameters == READ


def test_the_scenario_carries_the_samplers_and_the_arena_takes_them() -> None:
    config = loaded(with_parameters(SAMPLED)).config
    scenario = lesson_scenario(config.lessons[0], DIFFICULTIES)
    assert scenario.parameters == READ
    presets = preset_tables(load_presets(SHIPPED_FILES))
    tables = scenario_tables(scenario, config.env, presets, number=1)
    assert np.count_nonzero(tables.sampler != CONSTANT) == 5


def test_a_lesson_may_set_every_number_of_a_scenario() -> None:
    usual = parameter_values(ArenaSettings())
    text = ", ".join(f"{name}: {value:g}" for name, value in usual.items())
    assert loaded(with_parameters(f"{{{text}}}")).config.lessons[0].parameters == usual


@pytest.mark.parametrize("name", ["num_envs", "rays.tags"])
def test_a_lesson_may_set_nothing_else(name: str) -> None:
    (line,) = faults(with_parameters(f"{{{name}: 1}}"))
    start = f"c.yaml:9:18: lessons.0.parameters.{name}: unknown environment parameter ("
    assert line.startswith(start)


@pytest.mark.parametrize(("value", "lines"), [(value, lines) for value, *lines in WRONG_VALUES])
def test_a_wrong_value_gives_its_lines(value: str, lines: list[str]) -> None:
    got = faults(with_parameters(f"{{move_speed: {value}}}"))
    assert got == [f"c.yaml:{line}" for line in lines]


@pytest.mark.parametrize(("parameters", "line"), WRONG_PARAMETERS)
def test_parameters_that_no_arena_takes_give_their_line(parameters: str, line: str) -> None:
    assert faults(with_parameters(parameters)) == [f"c.yaml:{line}"]


def test_parameters_are_checked_where_another_part_is_wrong() -> None:
    parameters = "{time_limit: 31, mov_speed: 1, move_speed: -1}"
    text = with_parameters(parameters, GOOD.replace("num_envs: 64", "num_envs: x"))
    assert [line.split(": ")[1] for line in faults(text)] == [
        "env.num_envs",
        "lessons.0.parameters.time_limit",
        "lessons.0.parameters.mov_speed",
        "lessons.0.parameters.move_speed",
    ]


@pytest.mark.parametrize(
    ("wrong", "parameters"),
    [
        ("floor_size: x", "floor_size: 60"),
        ("block_gap_to_agent: x", "floor_size: 25"),
        ("rays: {range: -1}", "rays.range: 101"),
    ],
)
def test_no_parameter_is_held_against_a_setting_that_is_wrong(wrong: str, parameters: str) -> None:
    env = GOOD.replace("num_envs: 64", f"num_envs: 64\n  {wrong}")
    (line,) = faults(with_parameters(f"{{{parameters}}}", env))
    assert line.startswith("c.yaml:5:")


def parameters_of(text: str, *overrides: str) -> dict[str, ParameterValue]:
    """The first lesson's."""
    Path("c.yaml").write_text(text, encoding="utf-8")
    written = [f"lessons.0.parameters{override}" for override in overrides]
    return dict(load_curriculum("c.yaml", written).config.lessons[0].parameters)


def gaussian(mean: float) -> Gaussian:
    return Gaussian(sampler_parameters=GaussianParameters(mean=mean, st_dev=0.5))


# What `--set` says where move_speed is a Gaussian of 3 and 0.5, and the parameters then.
OVERRIDES: list[tuple[str, dict[str, ParameterValue]]] = [
    (".move_speed=4", {"move_speed": 4.0}),
    (".move_speed.sampler_parameters.mean=5", {"move_speed": gaussian(5.0)}),
    (".move_speed={sampler_type: uniform}", {"move_speed": Uniform()}),
    (
        "={rewards: {win: 4, lose: {sampler_type: uniform}}}",
        {"move_speed": gaussian(3.0), "rewards.win": 4.0, "rewards.lose": Uniform()},
    ),
]


@pytest.mark.parametrize(("override", "parameters"), OVERRIDES)
def test_an_override_changes_a_sampler_or_takes_its_place(
    override: str, parameters: dict[str, ParameterValue]
) -> None:
    sampler = "{sampler_type: gaussian, sampler_parameters: {mean: 3, st_dev: 0.5}}"
    assert parameters_of(with_parameters(f"{{move_speed: {sampler}}}"), override) == parameters


def test_an_override_reaches_into_a_sampler_that_an_override_gave() -> None:
    sampler = "{sampler_type: multirangeuniform, sampler_parameters: {intervals: [[1, 2]]}}"
    parameters = parameters_of(
        GOOD,
        f".rewards.win={sampler}",
        ".rewards.win.sampler_parameters.intervals.0.1=${seed}",
        ".rewards.win.sampler_parameters.seed=8",
    )
    given = MultiRangeUniformParameters(intervals=((1.0, 1.0),), seed=8)
    assert parameters == {"rewards.win": MultiRangeUniform(sampler_parameters=given)}


# What `--set` says and the line that follows.
WRONG_OVERRIDES = [
    ("={floor_size: 25}", f": floor_size must be at least 26 with these gaps, {FITS} (got 25)"),
    (
        ".rewards.win={sampler_type: uniform, sampler_parameters: {min_val: 1}}",
        ".rewards.win.sampler_parameters.min_val: unknown key (nearest valid key: min_value)",
    ),
]


@pytest.mark.parametrize(("override", "line"), WRONG_OVERRIDES)
def test_a_wrong_override_of_a_parameter_is_named(override: str, line: str) -> None:
    start = "lessons.0.parameters"
    written = f"{start}{override}"
    assert faults(GOOD, written)[0] == f"--set {written}: {start}{line}"

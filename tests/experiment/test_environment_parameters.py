"""Environment parameters: of a lesson, by --set, and as in a trainer file of ML-Agents."""

from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from broken_curriculum import FITS, GOOD, KINDS, faults, with_parameters

from aimbot_lab.curriculum.settings import Lesson, lesson_scenario
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

TWO_LESSONS = """\
name: two
lessons:
  - name: first
    targets: {goto: 1}
    parameters: {gun_range: 30}
    completion_criteria: {threshold: 0.5}
  - {name: last, targets: {attack: 1}}
"""
ONE_LESSON = """\
name: one
lessons:
  - name: mix
    targets: {goto: 3, attack: 1}
    completion_criteria: {threshold: 0.9}
"""
CONSTANTS = """\
environment_parameters:
  gun_range: 50
  move_speed:
    sampler_type: uniform
    sampler_parameters: {min_value: 4, max_value: 6, seed: -1}
"""
COURSE = """\
environment_parameters:
  gun_cooldown: 0.2
  goto_win_radius:
    curriculum:
      - name: Lesson0
        completion_criteria:
          measure: progress
          behavior: Walker
          signal_smoothing: true
          min_lesson_length: 100
          threshold: 0.1
        value: 9.0
      - name: Lesson1
        completion_criteria: {behavior: Walker, threshold: -3.0, require_reset: true}
        value: {sampler_type: uniform, sampler_parameters: {min_value: 3, max_value: 6}}
      - name: Lesson1
        value: 1.0
"""
SECOND = """\
  move_speed:
    curriculum:
      - {name: slow, value: 3, completion_criteria: {behavior: B, measure: progress,
         min_lesson_length: 100, threshold: 0.1}}
      - {name: Lesson1, value: 4, completion_criteria: {behavior: B, threshold: -3}}
      - {name: Lesson1, value: 5}
"""


pytestmark = pytest.mark.usefixtures("here")


def loaded(text: str) -> LoadedCurriculum:
    Path("c.yaml").write_text(text, encoding="utf-8")
    return load_curriculum("c.yaml")


def lessons(text: str) -> tuple[Lesson, ...]:
    return loaded(text).config.lessons


def test_constants_and_samplers_hold_in_every_lesson_that_does_not_say_otherwise() -> None:
    first, last = lessons(TWO_LESSONS + CONSTANTS)
    assert first.parameters["gun_range"] == 30
    assert last.parameters["gun_range"] == 50
    sampler = first.parameters["move_speed"]
    assert isinstance(sampler, Uniform)
    assert sampler == last.parameters["move_speed"]
    assert sampler.sampler_parameters.seed is None


@pytest.mark.parametrize(
    ("text", "number"),
    [(ONE_LESSON + COURSE, "9.0"), (TWO_LESSONS + CONSTANTS, "50"), (TWO_LESSONS, "30")],
    ids=["in a curriculum", "for all lessons", "in a lesson"],
)
def test_a_constant_sampler_is_its_number_wherever_a_sampler_may_be(text: str, number: str) -> None:
    sampler = f"{{sampler_type: constant, sampler_parameters: {{seed: 2258, value: {number}}}}}"
    assert f": {number}" in text
    found = lessons(text.replace(f": {number}", f": {sampler}"))
    assert found == lessons(text)
    assert not any(isinstance(one, dict) for lesson in found for one in lesson.parameters.values())


def test_a_curriculum_takes_the_place_of_the_lesson_whose_mix_it_plays() -> None:
    found = lessons(ONE_LESSON + COURSE)
    assert [lesson.name for lesson in found] == ["Lesson0", "Lesson1", "Lesson1 (2)"]
    assert {tuple(lesson.targets.items()) for lesson in found} == {(("goto", 3.0), ("attack", 1.0))}
    assert [lesson.parameters["gun_cooldown"] for lesson in found] == [0.2] * 3
    first, second, third = (lesson.parameters["goto_win_radius"] for lesson in found)
    assert (first, type(second), third) == (9, Uniform, 1)
    progress, reward, last = (lesson.completion_criteria for lesson in found)
    asked = "rule", "measure", "threshold", "min_lesson_length"
    assert attrgetter(*asked)(progress) == ("ml-agents", "progress", 0.1, 100)
    assert attrgetter(*asked)(reward) == ("ml-agents", "reward", -3.0, 0)  # with its defaults
    assert reward.smoothed is True
    assert (last.rule, last.threshold) == ("evidence", 0.9)  # of the lesson in `lessons`


def test_curricula_that_end_together_are_one() -> None:
    found = lessons(ONE_LESSON + COURSE + SECOND)
    assert [lesson.name for lesson in found] == ["Lesson0 / slow", "Lesson1", "Lesson1 (2)"]
    assert [lesson.parameters["move_speed"] for lesson in found] == [3, 4, 5]
    other = SECOND.replace("threshold: -3", "threshold: -2")
    (line,) = faults(ONE_LESSON + COURSE + other)
    assert "environment_parameters.move_speed: has lessons that do not end together" in line


# What is changed in ONE_LESSON + COURSE, and the line that follows.
COURSE_PATH = "environment_parameters.goto_win_radius"
BROKEN = [
    (
        "value: 9.0",
        "value: -9",
        f"{COURSE_PATH}.curriculum.0.value: must lie between 1e-06 and 100",
    ),
    (
        "value: 9.0",
        "value: {sampler_type: constant, sampler_parameters: {valeu: 9}}",
        f"{COURSE_PATH}.curriculum.0.value.sampler_parameters.valeu: unknown key (nearest valid "
        "key: value)",
    ),
    (
        "        completion_criteria: {behavior: Walker, threshold: -3.0, require_reset: true}\n",
        "",
        f"{COURSE_PATH}.curriculum.1.completion_criteria: is missing; only the last lesson may",
    ),
    (
        "lessons:\n",
        "lessons:\n  - {name: a, targets: {goto: 1}, completion_criteria: {threshold: 0.5}}\n",
        f"{COURSE_PATH}: has lessons of its own, which all play the mix of the one lesson",
    ),
    (
        "goto: 3, attack: 1}",
        "goto: 3}\n    parameters: {goto_win_radius: 3}",
        f"{COURSE_PATH}: has lessons of its own, and a lesson sets it as well",
    ),
    ("gun_cooldown: 0.2", "block_gap_to_agent: 90", "environment_parameters: floor_size must be"),
]


@pytest.mark.parametrize(("old", "new", "said"), BROKEN, ids=[new[:30] for _, new, _ in BROKEN])
def test_what_is_wrong_is_told_at_its_place(old: str, new: str, said: str) -> None:
    text = ONE_LESSON + COURSE
    assert old in text
    lines = faults(text.replace(old, new))
    assert said in lines[0]
    assert lines[0].startswith("c.yaml:")


def test_overrides_reach_into_them_and_the_resolved_text_has_them_in_full() -> None:
    loaded(ONE_LESSON + COURSE)
    overrides = [
        "environment_parameters.rewards.win=5",
        "environment_parameters.goto_win_radius.curriculum.0.value=8",
    ]
    first = load_curriculum("c.yaml", overrides)
    given = first.config.lessons[0].parameters
    assert (given["rewards.win"], given["goto_win_radius"]) == (5, 8)
    assert "environment_parameters: {}" in first.resolved_text
    assert loaded(first.resolved_text).config == first.config


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
# The parameters in line 9, from column 17, and the lines that follow.
WRONG = [
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
    *((f"{{move_speed: {value}}}", *lines) for value, *lines in WRONG_VALUES),
]


def parameters_of(text: str, *overrides: str) -> dict[str, ParameterValue]:
    """The first lesson's."""
    Path("c.yaml").write_text(text, encoding="utf-8")
    written = [f"lessons.0.parameters{override}" for override in overrides]
    return dict(load_curriculum("c.yaml", written).config.lessons[0].parameters)


def test_a_parameter_is_a_number_or_a_sampler_which_the_scenario_carries_to_the_arena() -> None:
    assert parameters_of(with_parameters(SAMPLED)) == READ
    config = load_curriculum("c.yaml").config
    scenario = lesson_scenario(config.lessons[0], DIFFICULTIES)
    assert scenario.parameters == READ
    presets = preset_tables(load_presets(SHIPPED_FILES))
    tables = scenario_tables(scenario, config.env, presets, number=1)
    assert np.count_nonzero(tables.sampler != CONSTANT) == 5


def test_a_lesson_may_set_every_number_of_a_scenario_and_nothing_else() -> None:
    usual = parameter_values(ArenaSettings())
    text = ", ".join(f"{name}: {value:g}" for name, value in usual.items())
    assert parameters_of(with_parameters(f"{{{text}}}")) == usual
    for name in ("num_envs", "rays.tags"):
        (line,) = faults(with_parameters(f"{{{name}: 1}}"))
        start = f"c.yaml:9:18: lessons.0.parameters.{name}: unknown environment parameter ("
        assert line.startswith(start)


@pytest.mark.parametrize(("parameters", "lines"), [(value, lines) for value, *lines in WRONG])
def test_wrong_parameters_give_their_lines(parameters: str, lines: list[str]) -> None:
    assert faults(with_parameters(parameters)) == [f"c.yaml:{line}" for line in lines]


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


def test_a_wrong_override_of_a_parameter_is_named() -> None:
    start = "lessons.0.parameters"
    sampler = "{sampler_type: uniform, sampler_parameters: {min_val: 1}}"
    for override, line in {
        "={floor_size: 25}": f": floor_size must be at least 26 with these gaps, {FITS} (got 25)",
        f".rewards.win={sampler}": ".rewards.win.sampler_parameters.min_val: unknown key (nearest "
        "valid key: min_value)",
    }.items():
        written = f"{start}{override}"
        assert faults(GOOD, written)[0] == f"--set {written}: {start}{line}"

"""`environment_parameters` as they stand in an ML-Agents trainer file, in a curriculum of ours."""

from pathlib import Path

import pytest
from broken_curriculum import faults

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.foundation.settings import Uniform

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
    assert found[0].parameters["goto_win_radius"] == 9
    assert isinstance(found[1].parameters["goto_win_radius"], Uniform)
    assert found[2].parameters["goto_win_radius"] == 1


def test_its_lessons_end_by_ml_agents_rule_with_ml_agents_defaults() -> None:
    progress, reward, last = (lesson.completion_criteria for lesson in lessons(ONE_LESSON + COURSE))
    assert progress is not None
    assert reward is not None
    assert last is not None
    assert progress.rule == reward.rule == "ml-agents"
    assert (progress.measure, progress.threshold, progress.min_lesson_length) == (
        "progress",
        0.1,
        100,
    )
    assert (reward.measure, reward.threshold, reward.min_lesson_length, reward.smoothed) == (
        "reward",
        -3.0,
        0,
        True,
    )
    assert (last.rule, last.threshold) == ("evidence", 0.9)  # of the lesson in `lessons`


def test_curricula_that_end_together_are_one() -> None:
    found = lessons(ONE_LESSON + COURSE + SECOND)
    assert [lesson.name for lesson in found] == ["Lesson0 / slow", "Lesson1", "Lesson1 (2)"]
    assert [lesson.parameters["move_speed"] for lesson in found] == [3, 4, 5]


def test_the_resolved_text_has_the_lessons_in_full() -> None:
    first = loaded(ONE_LESSON + COURSE)
    again = loaded(first.resolved_text)
    assert again.config == first.config
    assert "environment_parameters: {}" in first.resolved_text


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


def test_curricula_that_go_their_own_ways_are_refused() -> None:
    other = SECOND.replace("threshold: -3", "threshold: -2")
    (line,) = faults(ONE_LESSON + COURSE + other)
    assert "environment_parameters.move_speed: has lessons that do not end together" in line


def test_overrides_reach_into_them() -> None:
    Path("c.yaml").write_text(ONE_LESSON + COURSE, encoding="utf-8")
    overrides = [
        "environment_parameters.rewards.win=5",
        "environment_parameters.goto_win_radius.curriculum.0.value=8",
    ]
    first = load_curriculum("c.yaml", overrides).config.lessons[0]
    assert (first.parameters["rewards.win"], first.parameters["goto_win_radius"]) == (5, 8)

"""What a lesson refuses to be."""

import pytest
from pydantic import ValidationError

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson, chain_faults, lesson_scenario
from aimbot_lab.foundation.samplers import Gaussian, MultiRangeUniform, Uniform


@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5, -0.1, float("nan"), "0.9", True])
def test_a_threshold_must_lie_strictly_between_0_and_1(threshold: object) -> None:
    with pytest.raises(ValidationError):
        CompletionCriteria(threshold=threshold)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "targets",
    [{"goto": 0.0}, {"goto": -1.0}, {"goto": float("inf")}, {"goto": float("nan")}],
)
def test_weights_must_leave_something_to_draw(targets: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Lesson(name="a", targets=targets)
    with pytest.raises(ValidationError):
        Lesson(name="a", targets={"goto": 1.0}, difficulty={"goto": tuple(targets.values())})


def test_an_empty_chain_of_lessons_is_a_fault() -> None:
    assert list(chain_faults([])) == [((), "must hold at least one lesson")]


def test_difficulties_belong_to_a_target_of_the_lesson() -> None:
    lesson = Lesson(name="a", targets={"goto": 1.0}, difficulty={"attack": (1.0,)})
    assert list(chain_faults([lesson])) == [
        ((0, "difficulty", "attack"), "must be among the lesson's targets (goto)")
    ]


def test_a_lesson_that_is_wrong_in_itself_is_passed_over() -> None:
    criteria = CompletionCriteria(threshold=0.5)
    lesson = Lesson(name="a", targets={"goto": 1.0}, completion_criteria=criteria)
    assert list(chain_faults([None, lesson, None])) == []


@pytest.mark.parametrize("sampler", [Uniform(), Gaussian(), MultiRangeUniform()])
def test_a_sampler_reaches_the_scenario_given_as_such_or_as_a_mapping(
    sampler: Uniform | Gaussian | MultiRangeUniform,
) -> None:
    written = {"sampler_type": sampler.sampler_type, "sampler_parameters": {}}
    for given in (sampler, written):
        lesson = Lesson(
            name="a",
            targets={"free": 1.0},
            parameters={"move_speed": given, "gun_range": 3},  # type: ignore[dict-item]
        )
        scenario = lesson_scenario(lesson, {"free": 0})
        assert scenario.parameters == {"move_speed": sampler, "gun_range": 3.0}


@pytest.mark.parametrize("value", [True, "4", None, [4, 6], {}, {"sampler_type": "normal"}])
def test_a_parameter_is_a_number_or_a_sampler_and_nothing_else(value: object) -> None:
    with pytest.raises(ValidationError):
        Lesson(name="a", targets={"free": 1.0}, parameters={"move_speed": value})  # type: ignore[dict-item]

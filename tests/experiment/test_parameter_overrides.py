"""`--set` on the environment parameters of a lesson, whose names hold dots and values samplers."""

from pathlib import Path

import pytest
from broken_curriculum import FITS, GOOD, KINDS, faults, with_parameters

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.samplers import (
    Gaussian,
    GaussianParameters,
    MultiRangeUniform,
    MultiRangeUniformParameters,
    ParameterValue,
    Uniform,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
        ".rewards.win={sampler_type: uniform}",
        {"move_speed": gaussian(3.0), "rewards.win": Uniform()},
    ),
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
    (".move_speed={sampler_type: x}", f".move_speed.sampler_type: must be {KINDS} (got 'x')"),
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

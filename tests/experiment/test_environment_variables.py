"""A curriculum reads those environment variables that the user names, and no others."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults_of

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in {"LAB_SEED": "7", "LAB_WORD": "a: [b", "LAB_TRICK": "${seed}"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def written(seed: str, name: str = "good") -> None:
    text = GOOD.replace("seed: 1", f"seed: {seed}").replace("name: good", f"name: {name}")
    Path("c.yaml").write_text(text, encoding="utf-8")


def config(*allowed: str) -> CurriculumFile:
    return load_curriculum("c.yaml", allowed_env=allowed).config


def test_a_variable_that_is_allowed_gives_its_value_as_yaml_reads_it() -> None:
    written("${oc.env:LAB_SEED}", "run ${oc.env:LAB_SEED} of ${oc.env:LAB_NONE,many}")
    assert (config("LAB_SEED", "LAB_NONE").seed, config("LAB_SEED", "LAB_NONE").name) == (
        7,
        "run 7 of many",
    )


def test_what_would_be_more_than_a_scalar_stays_a_text() -> None:
    written("1", "${oc.env:LAB_WORD}")
    assert config("LAB_WORD").name == "a: [b"


def test_other_keys_can_refer_to_what_was_read() -> None:
    written("${oc.env:LAB_SEED}", "run ${seed}")
    assert config("LAB_SEED").name == "run 7"


def test_an_override_may_read_it_too() -> None:
    written("1")
    overridden = load_curriculum("c.yaml", ["seed=${oc.env:LAB_SEED}"], allowed_env=["LAB_SEED"])
    assert overridden.config.seed == 7


@pytest.mark.parametrize(
    ("seed", "line"),
    [
        ("${oc.env:LAB_OTHER}", "must not read the environment without --allow-env LAB_OTHER"),
        ("${oc.env:LAB_NONE}", "refers to an environment variable that is not set: LAB_NONE"),
        (
            "${oc.env:LAB_TRICK}",
            "refers to an environment variable that holds a reference: LAB_TRICK",
        ),
        ("${oc.env:LAB_WORD}", "must be a whole number (got 'a: [b')"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(seed: str, line: str) -> None:
    written(seed)
    faults = faults_of("c.yaml", allowed_env=["LAB_NONE", "LAB_TRICK", "LAB_WORD"])
    assert faults == [f"c.yaml:2:7: seed: {line}"]


def test_the_resolved_text_needs_no_environment() -> None:
    written("${oc.env:LAB_SEED}")
    resolved = load_curriculum("c.yaml", allowed_env=["LAB_SEED"]).resolved_text
    Path("c.yaml").write_text(resolved, encoding="utf-8")
    assert config().seed == 7

"""A good curriculum: what is read, overridden, resolved, written out again, and of the environment.

It reads those variables that the user names, and no others.
"""

from pathlib import Path
from typing import Any

import pytest
from broken_curriculum import GOOD, faults_of

from aimbot_lab.curriculum.settings import CompletionCriteria
from aimbot_lab.experiment.config import checks
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum, with_overrides
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.settings import ArenaSettings

LESSONS = """
lessons:
  - name: first
    targets: {goto: 1.0}
    difficulty: {goto: [1, 0, 0, 0, 0]}
    completion_criteria: &done {threshold: 0.9, min_lesson_length: 7}
  - name: last
    targets: {goto: 1.0}
    completion_criteria: {<<: *done, scope: every_cell}
"""


def loaded(folder: Path, text: str, *overrides: str) -> LoadedCurriculum:
    path = folder / "c.yaml"
    path.write_bytes(text.encode("utf-8"))
    return load_curriculum(path, overrides)


def test_what_is_left_out_keeps_its_default_and_merges_are_followed(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"name: g{LESSONS}").config
    assert (config.env, config.seed) == (ArenaSettings(), 1)
    first, last = config.lessons
    assert first.parameters == {}
    criteria = CompletionCriteria(threshold=0.9, min_lesson_length=7, scope="every_cell")
    assert last.completion_criteria == criteria


def test_scalars_are_those_of_yaml_1_2_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    text = f"name: no{LESSONS}train: {{total_steps: 5_000_000, learning_rate: 1e-4, gamma: .9}}\n"
    document = loaded(tmp_path, "\ufeff" + text.replace("\n", "\r\n"))
    assert document.source_text == text.replace("\n", "\r\n")
    train = document.config.train
    assert document.config.name == document.name == "no"
    assert (train.total_steps, train.learning_rate, train.gamma) == (5_000_000, 1e-4, 0.9)


def test_overrides_replace_values_and_merge_mappings(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"name: g\nenv: {{num_envs: 64, rewards: {{win: 5.0, lose: -5.0}}}}{LESSONS}",
        "env.rewards={win: 2.0}",
        "train.total_steps=1000",
        "train.learning_rate=1e-4",
        "lessons.0.name=renamed",
        "lessons[1].difficulty.goto=[0, 0, 0, 0, 1]",
        "lessons.0.parameters.rewards.spin_penalty=2",
        "lessons.0.parameters={move_speed: 4}",
        "seed=2",
        "seed=3",
    ).config
    assert (config.env.rewards.win, config.env.rewards.lose) == (2.0, -5.0)
    assert (config.train.total_steps, config.train.learning_rate) == (1000, 1e-4)
    assert config.lessons[0].name == "renamed"
    assert config.lessons[1].difficulty["goto"] == (0, 0, 0, 0, 1)
    assert config.lessons[0].parameters == {"rewards.spin_penalty": 2.0, "move_speed": 4.0}
    assert config.seed == 3


def test_references_are_resolved_through_others_and_overrides(tmp_path: Path) -> None:
    text = (
        f"name: ${{lessons[0].name}} ${{seed}}\nseed: ${{train.n_steps}}{LESSONS}"
        "train: {n_steps: '${.batch_size}', batch_size: 256}"
    )
    config = loaded(tmp_path, text).config
    assert (config.name, config.seed, config.train.n_steps) == ("first 256", 256, 256)
    assert loaded(tmp_path, text, "train.n_steps=512").config.seed == 512
    assert loaded(tmp_path, text, "seed=${train.batch_size}").name == "first 256"
    section = "lessons.1.completion_criteria=${lessons.0.completion_criteria}"
    first, last = loaded(tmp_path, text, section).config.lessons
    assert first.completion_criteria == last.completion_criteria
    # And an override can mend a file.
    assert loaded(tmp_path, f"name: g\nseed: ${{nope}}{LESSONS}", "seed=4").config.seed == 4
    assert loaded(tmp_path, f"seed: x{LESSONS}", "seed=4", "name=h").name == "h"


def test_the_resolved_text_reads_back_to_the_same(tmp_path: Path) -> None:
    for name in ("no", "1e5", "12:30", "~", "a: b", "π", "'"):
        quoted = name.replace("'", "''")
        text = f"name: '{quoted}'\nenv: {{mouse_factor: 1e-7}}{LESSONS}"
        first = loaded(tmp_path, text, "lessons.0.parameters.rewards.win=3")
        again = loaded(tmp_path, first.resolved_text)
        assert first.name == name
        assert (again.config, again.resolved_text) == (first.config, first.resolved_text)
        assert "gae_lambda" in first.resolved_text


def test_what_hangs_together_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    for name in ("lesson", "environment", "rollout", "cost", "network", "learner"):
        check = getattr(checks, f"{name}_diagnostics")

        def noted(*given: Any, name: str = name, check: Any = check, **named: Any) -> Any:
            asked.append(name)
            return check(*given, **named)

        monkeypatch.setattr(checks, f"{name}_diagnostics", noted)
    loaded(tmp_path, f"name: g{LESSONS}", "seed=3")
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == 6


def test_overrides_of_what_was_read_are_those_of_its_file_and_refused_at_its_lines(
    tmp_path: Path,
) -> None:
    text = f"name: g{LESSONS}\ntrain:\n  batch_size: 1024\n"
    several = ["train.learning_rate={schedule: linear, start: 1e-3, end: 1e-5}", "seed=7"]
    once = loaded(tmp_path, text, "lessons.0.name=x", *several)
    begun = loaded(tmp_path, text, "lessons.0.name=x")
    again = with_overrides(begun, several)
    assert (again.config, again.resolved_text) == (once.config, once.resolved_text)
    with pytest.raises(ConfigurationError) as refused:
        with_overrides(begun, ["env.num_envs=63"])
    (line,) = refused.value.faults
    assert line.startswith(f"{tmp_path / 'c.yaml'}:12:15: train.batch_size: must divide")


ALL = ("LAB_SEED", "LAB_NONE", "LAB_TRICK", "LAB_WORD")


@pytest.fixture(autouse=True)
def _variables(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LAB_SEED": "7", "LAB_WORD": "a: [b", "LAB_TRICK": "${seed}"}.items():
        monkeypatch.setenv(name, value)


def written(seed: str, name: str = "good") -> None:
    text = GOOD.replace("seed: 1", f"seed: {seed}").replace("name: good", f"name: {name}")
    Path("c.yaml").write_text(text, encoding="utf-8")


def config(*allowed: str) -> CurriculumFile:
    return load_curriculum("c.yaml", allowed_env=allowed).config


def test_a_variable_that_is_allowed_gives_its_value_as_yaml_reads_it() -> None:
    written("${oc.env:LAB_SEED}", "run ${oc.env:LAB_SEED} of ${oc.env:LAB_NONE,many}")
    found = config("LAB_SEED", "LAB_NONE")
    assert (found.seed, found.name) == (7, "run 7 of many")
    written("${oc.env:LAB_SEED}", "run ${seed}")
    assert config("LAB_SEED").name == "run 7"
    written("1", "${oc.env:LAB_WORD}")
    assert config("LAB_WORD").name == "a: [b", "more than a scalar stays a text"
    overridden = load_curriculum("c.yaml", ["seed=${oc.env:LAB_SEED}"], allowed_env=ALL)
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
    assert faults_of("c.yaml", allowed_env=ALL) == [f"c.yaml:2:7: seed: {line}"]


def test_the_resolved_text_needs_no_environment() -> None:
    written("${oc.env:LAB_SEED}")
    resolved = load_curriculum("c.yaml", allowed_env=["LAB_SEED"]).resolved_text
    Path("c.yaml").write_text(resolved, encoding="utf-8")
    assert config().seed == 7

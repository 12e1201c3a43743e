"""Many faults at once, faults that hang together, and faults of `--set`."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, REFERENCE, faults


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_faults_of_a_file_are_listed_at_once_in_its_order() -> None:
    content = GOOD.replace("seed: 1", "seed: x\nsed: 1").replace("num_envs: 64", "num_envs: 0")
    content = content.replace("0.9", "2").replace("{goto: 1.0}", "{fly: 1}").replace("1024", "1")
    content = content.replace("name: last", "name: first\n    parameters: {a: 1, b: x}")
    keys = [line.split(": ")[1] for line in faults(content)]
    assert keys == [
        "seed",
        "sed",
        "env.num_envs",
        "lessons.0.targets.fly",
        "lessons.0.difficulty.goto",
        "lessons.0.completion_criteria.threshold",
        "lessons.1.name",
        "lessons.1.parameters.a",
        "lessons.1.parameters.b",
        "lessons.1.targets.fly",
        "train.batch_size",
    ]


def test_faults_of_form_and_of_meaning_are_listed_together() -> None:
    content = GOOD.replace("seed: 1", "seed: !x 1\nname: twice").replace("num_envs", "num_env")
    assert [line.split(": ", 1)[0] for line in faults(content)] == [
        "c.yaml:2:7",
        "c.yaml:3:1",
        "c.yaml:5:3",
    ]


def test_keys_of_one_mapping_that_do_not_go_together_are_each_listed() -> None:
    content = GOOD.replace("threshold: 0.9", "threshold: 1.5, signal_smoothing: true")
    assert [line.split(": ")[1].rpartition(".")[2] for line in faults(content)] == [
        "threshold",
        "signal_smoothing",
    ]


def test_no_fault_follows_from_the_default_of_a_key_that_is_wrong() -> None:
    content = GOOD.replace("num_envs: 64", "num_envs: 0").replace("1024", "1000")
    assert faults(content) == ["c.yaml:4:13: env.num_envs: must be at least 1 (got 0)"]


def test_of_an_unknown_algorithm_nothing_is_said_but_its_name() -> None:
    (line,) = faults(GOOD.replace("batch_size: 1024", "algo: a2c\n  batch_size: 1000"))
    assert "train.algo: must be " in line


def test_a_byte_order_mark_takes_no_column() -> None:
    (line,) = faults("\ufeff" + GOOD.replace("good", "5"))
    assert line == "c.yaml:1:7: name: must be text (got 5)"


def test_a_fault_below_an_alias_is_listed_once() -> None:
    content = GOOD.replace("{threshold: 0.9}", "&done {threshold: !x 0.9}")
    content += "tracking: {experiment: !x a}\n"
    content = content.replace("name: last", "name: last\n    completion_criteria: *done")
    assert [line.split(": ", 1)[0] for line in faults(content)] == ["c.yaml:10:44", "c.yaml:16:24"]


def test_no_fault_spans_two_lines_or_steers_a_terminal() -> None:
    (line,) = faults(GOOD.replace("seed: 1", '"a\\e[31m\\nb\\ud800": 1'))
    assert line == "c.yaml:2:1: a key must be visible text (got a\\x1b[31m\\nb\\ud800)"


def test_references_that_double_at_every_link_are_stopped() -> None:
    chain = "".join(f"x{n}: ${{x{n - 1}}}${{x{n - 1}}}\n" for n in range(1, 60))
    assert any("its value is too large" in line for line in faults(f"x0: abcdefghij\n{chain}"))


def test_a_circle_of_references_is_named() -> None:
    content = (
        GOOD.replace("seed: 1", "seed: ${train.n_epochs}") + "  n_epochs: ${env.decision_period}\n"
    )
    lines = faults(content.replace("num_envs: 64", "num_envs: 64\n  decision_period: ${seed}"))
    assert [line.split(": ", 1)[1] for line in lines] == [
        f"{key}: must not refer to itself through other keys"
        for key in ("seed", "env.decision_period", "train.n_epochs")
    ]


# What `--set` says and the line that follows.
OVERRIDES = [
    ("seed", "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"),
    ("=5", "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"),
    ("a..b=1", "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"),
    ("seed=x", "seed: must be a whole number (got 'x')"),
    ("seed=", "seed: must be a whole number (got nothing)"),
    ("env.rewrads.win=1", "env.rewrads: unknown key (nearest valid key: rewards)"),
    ("env.rewards.wim=1", "env.rewards.wim: unknown key (nearest valid key: win)"),
    ("lessons.7.name=x", "lessons is a list of 2, so 7 must be a number below 2"),
    ("lessons.one.name=x", "lessons is a list of 2, so one must be a number below 2"),
    ("lessons=[]", "lessons: must not be empty"),
    ("lessons.0.targets.goto=0", "lessons.0.targets: weights must not sum to 0"),
    ("env={num_envs: 0}", "env.num_envs: must be at least 1 (got 0)"),
    ("env=5", "env: must be a mapping of keys (got 5)"),
    ("name.x=3", "name: must be text (got a mapping)"),
    ("seed=a: b: c", "the value: not valid YAML: mapping values are not allowed here"),
    ("seed=${oc.env:HOME}", "seed: must not read the environment without --allow-env HOME"),
    ("seed=${oc.decode:x}", f"seed: must not hold '${{oc.decode:x}}'; {REFERENCE}"),
    (
        "train.batch_size=1000",
        "train.batch_size: must divide env.num_envs * train.n_steps = 8192"
        " (got 1000; nearest that does: 1024)",
    ),
    (
        "lessons.0.parameters.rewards.wim=1",
        "lessons.0.parameters.rewards.wim: unknown environment parameter"
        " (nearest valid key: rewards.win)",
    ),
]


@pytest.mark.parametrize(("override", "line"), OVERRIDES, ids=[text for text, _ in OVERRIDES])
def test_a_wrong_override_is_named_as_it_was_written(override: str, line: str) -> None:
    assert faults(GOOD, override) == [f"--set {override}: {line}"]


def test_faults_of_the_file_and_of_overrides_are_listed_together() -> None:
    lines = faults(GOOD.replace("seed: 1", "seed: x"), "train.n_step=4", "nonsense")
    assert [line.split(": ", 1)[0] for line in lines] == [
        "c.yaml:2:7",
        "--set train.n_step=4",
        "--set nonsense",
    ]

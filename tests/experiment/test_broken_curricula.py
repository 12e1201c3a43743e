"""Every mistake in a curriculum gives its one line, with file, line, column and key.

Files that are no curriculum or too large, many faults at once, and faults of `--set` among them.
"""

import pytest
from broken_curriculum import GOOD, REFERENCE, faults, faults_of

from aimbot_lab.experiment.config.yaml_reader import MAX_BYTES

KEYS = (
    "name, seed, env, lessons, forgetting, evaluation, self_play, environment_parameters, train, "
    "tracking"
)

# What is replaced in GOOD, by what, and the line that follows.
REPLACED = [
    # keys
    ("num_envs", "num_env", "4:3: env.num_env: unknown key (nearest valid key: num_envs)"),
    ("seed: 1", "seed: 1\nzzz: 1", f"3:1: zzz: unknown key (valid keys: {KEYS})"),
    (
        "threshold",
        "treshold",
        "10:26: lessons.0.completion_criteria.threshold: is missing\n"
        "10:27: lessons.0.completion_criteria.treshold: unknown key (nearest valid key: threshold)",
    ),
    ("name: good\n", "", "1:1: name: is missing"),
    ("{threshold: 0.9}", "{}", "10:26: lessons.0.completion_criteria.threshold: is missing"),
    ("seed: 1", "seed: 1\nseed: 2", "3:1: seed: is given twice, first in line 2"),
    ("seed: 1", "1: 2", "2:1: a key must be visible text (got 1)"),
    # types and bounds
    ("seed: 1", "seed: one", "2:7: seed: must be a whole number (got 'one')"),
    ("seed: 1", "seed:", "2:6: seed: must be a whole number (got nothing)"),
    ("seed: 1", "seed: -1", "2:7: seed: must be at least 0 (got -1)"),
    ("seed: 1", "seed: 1e60", "2:7: seed: must be a number of at most 18 digits (got 1e+60)"),
    ("win: 1.0", "win: .inf", "5:18: env.rewards.win: must be a finite number (got inf)"),
    ("{win: 1.0}", "[1]", "5:12: env.rewards: must be a mapping of keys (got a list)"),
    ("name: good", "name: ''", "1:7: name: must not be empty"),
    ("name: good", f"name: {'x' * 101}", "1:7: name: must have at most 100 characters"),
    (
        "batch_size: 1024",
        "algo: pp0",
        "14:9: train.algo: must be one of 15 names, the nearest is ppo (got 'pp0')",
    ),
    ("batch_size: 1024", "algo: duel_ppo", "14:9: train.algo: duel_ppo is called hybrid_ppo now"),
    # lessons
    (
        "0.9",
        "1.0",
        "10:38: lessons.0.completion_criteria.threshold: must be less than 1.0 (got 1.0)",
    ),
    ("{goto: 1.0}", "{goto: 0}", "8:14: lessons.0.targets: weights must not sum to 0"),
    (
        "{goto: 1.0}",
        "{goto: 1, fly: 1}",
        "8:24: lessons.0.targets.fly: unknown target (valid keys: free, goto, attack)",
    ),
    (
        "[1, 0, 0, 0, 0]",
        "[1, 0]",
        "9:24: lessons.0.difficulty.goto: must hold 5 weights, one for each difficulty (got 2)",
    ),
    (
        "{goto: 1.0}\n    difficulty: {goto: [1, 0, 0, 0, 0]}",
        "{free: 1.0}\n    difficulty: {free: [1]}",
        "9:24: lessons.0.difficulty.free: free has no difficulties: leave it out",
    ),
    (
        "{goto: [1, 0, 0, 0, 0]}",
        "{attack: [1, 0, 0, 0, 0]}",
        "9:26: lessons.0.difficulty.attack: must be among the lesson's targets (goto)",
    ),
    (
        "    completion_criteria: {threshold: 0.9}\n",
        "",
        "7:5: lessons.0.completion_criteria: is missing; only the last lesson may do without",
    ),
    ("name: last", "name: first", "11:11: lessons.1.name: must differ from the name of lessons.0"),
    # sections against each other and against themselves
    (
        "1024",
        "1000",
        "14:15: train.batch_size: must divide env.num_envs * train.n_steps = 8192"
        " (got 1000; nearest that does: 1024)",
    ),
    (
        "rewards: {win: 1.0}",
        "rays: {middle_count: 4}",
        "5:24: env.rays.middle_count: must be odd, so that the gun's line is seen (got 4)",
    ),
    # YAML
    (
        "  num_envs",
        "\tnum_envs",
        "4:1: not valid YAML: while scanning for the next token, found a tab; indent with spaces",
    ),
    ("seed: 1", "seed: a: b", "2:8: not valid YAML: mapping values are not allowed here"),
    ("name: good", "name: g\0d", "1:8: not valid YAML: character U+0000"),
    ("name: good", 'name: "a\\nb"', "1:7: name: must be one line of visible text (got 'a\\nb')"),
    (
        "seed: 1",
        "seed: !!python/name:os.getcwd x",
        "2:7: seed: must not carry the tag tag:yaml.org,2002:python/name:os.getcwd",
    ),
    ("seed: 1", "seed: !mine 1", "2:7: seed: must not carry the tag !mine"),
    ("seed: 1", "seed: ???", "2:7: seed: must be given a value (got ???)"),
    (
        "seed: 1",
        "seed: ${nope}",
        "2:7: seed: can't be resolved: Interpolation key 'nope' not found;"
        " only keys that the file sets can be referred to",
    ),
    ("seed: 1", "seed: ${seed}", "2:7: seed: can't be resolved: Recursive interpolation detected"),
    (
        "name: good",
        "name: '${${seed}:HOME}'",
        f"1:7: name: must not hold '${{${{seed}}:HOME}}'; {REFERENCE}",
    ),
]


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("old", "new", "lines"), REPLACED, ids=[new[:40] for _, new, *_ in REPLACED]
)
def test_one_mistake_gives_its_one_line(old: str, new: str, lines: str) -> None:
    assert old in GOOD
    assert faults(GOOD.replace(old, new, 1)) == [f"c.yaml:{one}" for one in lines.split("\n")]


FORM = (
    "must be a mapping with name, and perhaps seed, env, lessons, forgetting, evaluation, "
    "self_play, environment_parameters, train, tracking"
)

# Whole files and what follows.
WHOLE = {
    "empty": (b"", f"1:1: {FORM} (the file is empty)"),
    "a list": (b"\n- a\n", f"2:1: {FORM} (got a list)"),
    "not UTF-8": (
        b"name: g\nseed: \xe9\xff\n",
        "2:7: not valid UTF-8: byte 0xe9; save the file as UTF-8",
    ),
    "an alias bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        b"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
        b"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        b"d: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
        "1:24: holds more than 5000 values",
    ),
}


@pytest.mark.parametrize(("content", "line"), WHOLE.values(), ids=WHOLE)
def test_what_is_no_curriculum_gives_its_one_line(content: bytes, line: str) -> None:
    assert faults(content) == [f"c.yaml:{line}"]


@pytest.mark.parametrize("name", ["missing.yaml", "no/such/folder.yaml", "nul\0.yaml", "./"])
def test_what_is_not_there_or_no_file_gives_its_one_line(name: str) -> None:
    (line,) = faults_of(name)
    reasons = "No such file or directory", "embedded null byte", "Is a directory"
    assert line.endswith(tuple(f": can't be read: {reason}" for reason in reasons))


def test_a_file_without_end_and_a_curriculum_that_could_not_be_read_again_are_refused() -> None:
    assert faults("#" * (MAX_BYTES + 1)) == [f"c.yaml: is larger than {MAX_BYTES} bytes"]
    lessons = "".join(
        f"  - {{name: l{number}, targets: {{goto: 1}}, completion_criteria: {{threshold: 0.5}}}}\n"
        for number in range(450)
    )
    (line,) = faults(f"name: g\nlessons:\n{lessons}")
    assert "is too large: with all defaults" in line


def keys(content: str) -> list[str]:
    """Of what keys the lines are in which it is refused."""
    return [line.split(": ")[1] for line in faults(content)]


def places(content: str, *overrides: str) -> list[str]:
    return [line.split(": ", 1)[0] for line in faults(content, *overrides)]


def test_all_faults_of_a_file_are_listed_at_once_in_its_order() -> None:
    content = GOOD.replace("seed: 1", "seed: x\nsed: 1").replace("num_envs: 64", "num_envs: 0")
    content = content.replace("0.9", "2, signal_smoothing: true").replace("1024", "1")
    content = content.replace("{goto: 1.0}", "{fly: 1}")
    content = content.replace("name: last", "name: first\n    parameters: {a: 1, b: x}")
    criteria = "lessons.0.completion_criteria"
    assert keys(content) == [
        *("seed", "sed", "env.num_envs", "lessons.0.targets.fly", "lessons.0.difficulty.goto"),
        *(f"{criteria}.threshold", f"{criteria}.signal_smoothing", "lessons.1.name"),
        *("lessons.1.parameters.a", "lessons.1.parameters.b", "lessons.1.targets.fly"),
        "train.batch_size",
    ]
    content = GOOD.replace("seed: 1", "seed: !x 1\nname: twice").replace("num_envs", "num_env")
    assert places(content) == ["c.yaml:2:7", "c.yaml:3:1", "c.yaml:5:3"]  # of form and of meaning


def test_no_fault_follows_from_the_default_of_a_key_that_is_wrong() -> None:
    content = GOOD.replace("num_envs: 64", "num_envs: 0").replace("1024", "1000")
    assert faults(content) == ["c.yaml:4:13: env.num_envs: must be at least 1 (got 0)"]
    content = GOOD.replace("batch_size: 1024", "algo: a3c\n  batch_size: 1000")
    assert keys(content) == ["train.algo"]


def test_a_byte_order_mark_takes_no_column_and_no_fault_steers_a_terminal() -> None:
    content = "\ufeff" + GOOD.replace("good", "5")
    assert faults(content) == ["c.yaml:1:7: name: must be text (got 5)"]
    (line,) = faults(GOOD.replace("seed: 1", '"a\\e[31m\\nb\\ud800": 1'))
    assert line == "c.yaml:2:1: a key must be visible text (got a\\x1b[31m\\nb\\ud800)"


def test_a_fault_below_an_alias_is_listed_once() -> None:
    content = GOOD.replace("{threshold: 0.9}", "&done {threshold: !x 0.9}")
    content += "tracking: {experiment: !x a}\n"
    content = content.replace("name: last", "name: last\n    completion_criteria: *done")
    assert places(content) == ["c.yaml:10:44", "c.yaml:16:24"]


def test_references_that_double_at_every_link_are_stopped_and_a_circle_is_named() -> None:
    chain = "".join(f"x{n}: ${{x{n - 1}}}${{x{n - 1}}}\n" for n in range(1, 60))
    assert any("its value is too large" in line for line in faults(f"x0: abcdefghij\n{chain}"))
    content = GOOD.replace("seed: 1", "seed: ${train.n_epochs}")
    content = content.replace("num_envs: 64", "num_envs: 64\n  decision_period: ${seed}")
    lines = faults(f"{content}  n_epochs: ${{env.decision_period}}\n")
    assert [line.split(": ", 1)[1] for line in lines] == [
        f"{key}: must not refer to itself through other keys"
        for key in ("seed", "env.decision_period", "train.n_epochs")
    ]


# What `--set` says and the line that follows.
OVERRIDES = [
    ("seed", "must be KEY=VALUE with a KEY such as train.total_steps or lessons.0.name"),
    ("seed=x", "seed: must be a whole number (got 'x')"),
    ("env.rewrads.win=1", "env.rewrads: unknown key (nearest valid key: rewards)"),
    ("lessons.7.name=x", "lessons is a list of 2, so 7 must be a number below 2"),
    ("lessons.0.targets.goto=0", "lessons.0.targets: weights must not sum to 0"),
    ("seed=a: b: c", "the value: not valid YAML: mapping values are not allowed here"),
]


@pytest.mark.parametrize(("override", "line"), OVERRIDES, ids=[text for text, _ in OVERRIDES])
def test_a_wrong_override_is_named_as_it_was_written(override: str, line: str) -> None:
    assert faults(GOOD, override) == [f"--set {override}: {line}"]


def test_faults_of_the_file_and_of_overrides_are_listed_together() -> None:
    found = places(GOOD.replace("seed: 1", "seed: x"), "train.n_step=4", "nonsense")
    assert found == ["c.yaml:2:7", "--set train.n_step=4", "--set nonsense"]

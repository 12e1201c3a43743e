"""Every mistake in a curriculum gives its one line, with file, line, column and key."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, REFERENCE, faults

from aimbot_lab.experiment.config.document import load_curriculum

ALGORITHMS = (
    "'ppo', 'maskable_ppo', 'recurrent_ppo', 'trpo', 'dqn', 'qrdqn', 'hybrid_ppo' or 'q_learning'"
)
KEYS = (
    "name, seed, env, lessons, forgetting, evaluation, self_play, environment_parameters, train, "
    "tracking"
)

# What is replaced in GOOD, by what, and the line that follows.
REPLACED = [
    # keys
    ("num_envs", "num_env", "4:3: env.num_env: unknown key (nearest valid key: num_envs)"),
    ("win:", "winn:", "5:13: env.rewards.winn: unknown key (nearest valid key: win)"),
    ("seed: 1", "seed: 1\nzzz: 1", f"3:1: zzz: unknown key (valid keys: {KEYS})"),
    ("threshold", "treshold", None),
    ("name: good\n", "", "1:1: name: is missing"),
    ("{threshold: 0.9}", "{}", "10:26: lessons.0.completion_criteria.threshold: is missing"),
    ("seed: 1", "seed: 1\nseed: 2", "3:1: seed: is given twice, first in line 2"),
    ("seed: 1", "1: 2", "2:1: a key must be visible text (got 1)"),
    ("seed: 1", "? [a]\n: 2", "2:3: a key must be visible text (got a list or mapping)"),
    # types and bounds
    ("seed: 1", "seed: one", "2:7: seed: must be a whole number (got 'one')"),
    ("seed: 1", "seed: 1.5", "2:7: seed: must be a whole number (got 1.5)"),
    ("seed: 1", "seed: true", "2:7: seed: must be a whole number (got true)"),
    ("seed: 1", "seed: yes", "2:7: seed: must be a whole number (got 'yes')"),
    ("seed: 1", "seed: 010", "2:7: seed: must be a whole number (got '010')"),
    ("seed: 1", "seed: 12:30", "2:7: seed: must be a whole number (got '12:30')"),
    ("seed: 1", "seed: 2001-01-01", "2:7: seed: must be a whole number (got '2001-01-01')"),
    ("seed: 1", "seed:", "2:6: seed: must be a whole number (got nothing)"),
    ("seed: 1", "seed: -1", "2:7: seed: must be at least 0 (got -1)"),
    ("seed: 1", "seed: 9999999999", "2:7: seed: must be at most 4294967295 (got 9999999999)"),
    (
        "seed: 1",
        f"seed: {'9' * 19}",
        f"2:7: seed: must be a number of at most 18 digits (got '{'9' * 19}')",
    ),
    (
        "seed: 1",
        "seed: 1e60",
        "2:7: seed: must be a number of at most 18 digits (got 1e+60)",
    ),
    ("win: 1.0", "win: .inf", "5:18: env.rewards.win: must be a finite number (got inf)"),
    ("win: 1.0", "win: 1e400", "5:18: env.rewards.win: must be a finite number (got inf)"),
    ("win: 1.0", "win: '1'", "5:18: env.rewards.win: must be a number (got '1')"),
    ("{win: 1.0}", "[1]", "5:12: env.rewards: must be a mapping of keys (got a list)"),
    ("name: good", "name: 5", "1:7: name: must be text (got 5)"),
    ("name: good", "name: ''", "1:7: name: must not be empty"),
    ("name: good", f"name: {'x' * 101}", "1:7: name: must have at most 100 characters"),
    (
        "batch_size: 1024",
        "algo: pp0",
        f"14:9: train.algo: must be {ALGORITHMS} (got 'pp0')",
    ),
    (
        "batch_size: 1024",
        "algo: duel_ppo",
        "14:9: train.algo: duel_ppo is called hybrid_ppo now",
    ),
    # lessons
    (
        "0.9",
        "1.5",
        "10:38: lessons.0.completion_criteria.threshold: must be less than 1.0 (got 1.5)",
    ),
    (
        "0.9",
        "1.0",
        "10:38: lessons.0.completion_criteria.threshold: must be less than 1.0 (got 1.0)",
    ),
    (
        "0.9",
        ".nan",
        "10:38: lessons.0.completion_criteria.threshold: must be a finite number (got nan)",
    ),
    (
        "0.9",
        "0.9, scope: cells",
        "10:50: lessons.0.completion_criteria.scope: must be 'pooled' or 'every_cell'"
        " (got 'cells')",
    ),
    ("{goto: 1.0}", "{goto: 0}", "8:14: lessons.0.targets: weights must not sum to 0"),
    ("{goto: 1.0}", "{goto: -1}", "8:21: lessons.0.targets.goto: must be at least 0 (got -1)"),
    ("{goto: 1.0}", "goto", "8:14: lessons.0.targets: must be a mapping of keys (got 'goto')"),
    (
        "{goto: 1.0}",
        "{goto: 1, gotto: 1}",
        "8:24: lessons.0.targets.gotto: unknown target (nearest valid key: goto)",
    ),
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
        "[1, 0, 0, 0, 0]",
        "[0, 0, 0, 0, 0]",
        "9:24: lessons.0.difficulty.goto: weights must not sum to 0",
    ),
    (
        "{goto: 1.0}\n    difficulty: {goto: [1, 0, 0, 0, 0]}",
        "{free: 1.0}\n    difficulty: {free: [1]}",
        "9:24: lessons.0.difficulty.free: free has no difficulties: leave it out",
    ),
    ("[1, 0, 0, 0, 0]", "[]", "9:24: lessons.0.difficulty.goto: weights must not sum to 0"),
    (
        "[1, 0, 0, 0, 0]",
        "[1, x, 0, 0, 0]",
        "9:28: lessons.0.difficulty.goto.1: must be a number (got 'x')",
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
    (
        "name: last",
        "name: first",
        "11:11: lessons.1.name: must differ from the name of lessons.0",
    ),
    (
        "difficulty:",
        "parameters: {move_sped: 1}\n    difficulty:",
        "9:18: lessons.0.parameters.move_sped: unknown environment parameter"
        " (nearest valid key: move_speed)",
    ),
    (
        "difficulty:",
        "parameters: {rewards.wins: 1}\n    difficulty:",
        "9:18: lessons.0.parameters.rewards.wins: unknown environment parameter"
        " (nearest valid key: rewards.win)",
    ),
    (
        "difficulty:",
        "parameters: {move_speed: -3}\n    difficulty:",
        "9:30: lessons.0.parameters.move_speed: must lie between 0 and 1000 (got -3)",
    ),
    (
        "difficulty:",
        "parameters: {enemy_hits_to_kill: 1.5}\n    difficulty:",
        "9:38: lessons.0.parameters.enemy_hits_to_kill: must be a whole number (got 1.5)",
    ),
    # sections against each other and against themselves
    (
        "1024",
        "1000",
        "14:15: train.batch_size: must divide env.num_envs * train.n_steps = 8192"
        " (got 1000; nearest that does: 1024)",
    ),
    (
        "batch_size: 1024",
        "n_steps: 1000000000",
        "14:12: train.n_steps: is too large:"
        " env.num_envs * train.n_steps = 64000000000 must be at most 16777216",
    ),
    (
        "rewards: {win: 1.0}",
        "rays: {middle_count: 4}",
        "5:24: env.rays.middle_count: must be odd, so that the gun's line is seen (got 4)",
    ),
    (
        "batch_size: 1024",
        "aim_bins: [-9, 0, 9]",
        "14:13: train.aim_bins: must not go beyond env.mouse_limit, 5 (got -9)",
    ),
    (
        "batch_size: 1024",
        "network: {layers: []}",
        "14:21: train.network.layers: must name at least one layer",
    ),
    # YAML
    (
        "  num_envs",
        "\tnum_envs",
        "4:1: not valid YAML: while scanning for the next token, found a tab; indent with spaces",
    ),
    ("seed: 1", "seed: a: b", "2:8: not valid YAML: mapping values are not allowed here"),
    ("seed: 1", "seed: *one", "2:7: not valid YAML: found undefined alias 'one'"),
    ("name: good", "name: g\0d", "1:8: not valid YAML: character U+0000"),
    ("name: good", 'name: "\\UFFFFFFFF"', None),
    ("name: good", 'name: "\\ud800"', None),
    ("name: good", 'name: "a\\nb"', "1:7: name: must be one line of visible text (got 'a\\nb')"),
    ("seed: 1", "seed: !!python/name:os.getcwd x", None),
    ("seed: 1", "seed: !mine 1", "2:7: seed: must not carry the tag !mine"),
    ("seed: 1", "seed: !!int x", "2:7: seed: must be a number (got 'x')"),
    ("seed: 1", "<<: 3", "2:5: << must merge a mapping or a list of mappings"),
    ("seed: 1", "seed: ???", "2:7: seed: must be given a value (got ???)"),
    (
        "seed: 1",
        "seed: ${nope}",
        "2:7: seed: can't be resolved: Interpolation key 'nope' not found;"
        " only keys that the file sets can be referred to",
    ),
    (
        "seed: 1",
        "seed: ${seed}",
        "2:7: seed: can't be resolved: Recursive interpolation detected",
    ),
    ("seed: 1", "seed: ${}", f"2:7: seed: must not hold '${{}}'; {REFERENCE}"),
    (
        "name: good",
        "name: ${oc.env:HOME}",
        "1:7: name: must not read the environment without --allow-env HOME",
    ),
    (
        "name: good",
        "name: ${oc.env:HOME}/${oc.decode:x}",
        "1:7: name: must not read the environment without --allow-env HOME",
    ),
    (
        "name: good",
        "name: ${oc.decode:x}",
        f"1:7: name: must not hold '${{oc.decode:x}}'; {REFERENCE}",
    ),
    (
        "name: good",
        "name: '${${seed}:HOME}'",
        f"1:7: name: must not hold '${{${{seed}}:HOME}}'; {REFERENCE}",
    ),
]
OWN_LINES = {
    "threshold": [
        "10:26: lessons.0.completion_criteria.threshold: is missing",
        "10:27: lessons.0.completion_criteria.treshold: unknown key (nearest valid key: threshold)",
    ],
    'name: "\\UFFFFFFFF"': ["1:10: not valid YAML: a number or an escape is too large"],
    'name: "\\ud800"': ["1:7: name: must be one line of visible text (got '\\ud800')"],
    "seed: !!python/name:os.getcwd x": [
        "2:7: seed: must not carry the tag tag:yaml.org,2002:python/name:os.getcwd"
    ],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("old", "new", "line"), REPLACED, ids=[new[:40] for _, new, _ in REPLACED])
def test_one_mistake_gives_its_one_line(old: str, new: str, line: str | None) -> None:
    assert old in GOOD
    expected = OWN_LINES[old if old == "threshold" else new] if line is None else [line]
    assert faults(GOOD.replace(old, new, 1)) == [f"c.yaml:{one}" for one in expected]


def test_the_curriculum_that_the_mistakes_are_made_in_is_good() -> None:
    Path("c.yaml").write_text(GOOD)
    assert load_curriculum("c.yaml").name == "good"

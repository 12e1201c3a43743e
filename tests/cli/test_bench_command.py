"""`aimbot-lab bench sim`: what its output holds; its figures are not for a test."""

import json
import re

import pytest
from click.testing import CliRunner, Result

import aimbot_lab
from aimbot_lab.bench.sim import FULL, QUICK
from aimbot_lab.cli.bench import bench

PLAYED = (
    *(("arena", target) for target in ("free", "goto", "attack")),
    ("duel", "duel"),
    ("gorge", "score"),
)
SHARES = {"rays", "movement", "reward", "observation", "reset", "rest"}


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(bench, ["sim", "--quick", *arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def report() -> dict:
    return json.loads(run("--json").stdout)


@pytest.mark.slow
def test_every_target_rows_and_threads_is_measured_once(report: dict) -> None:
    keys = "world", "target", "num_envs", "threads"
    measured = [tuple(row[key] for key in keys) for row in report["rows"]]
    assert sorted(measured) == sorted(
        (*played, num_envs, threads)
        for played in PLAYED
        for num_envs in QUICK.num_envs
        for threads in QUICK.threads
    )
    assert all(row["steps_per_second"] > 0 for row in report["rows"])


def test_the_full_bench_measures_what_the_readme_quotes() -> None:
    assert FULL.num_envs == (1, 16, 256, 1024, 4096)
    assert FULL.threads == (1, 2)
    assert FULL.targets == ("free", "goto", "attack")
    assert FULL.others == ("duel", "gorge")
    assert FULL.starts


def test_the_shares_of_a_step_make_up_the_whole(report: dict) -> None:
    other = report["other_worlds"]["gorge"]
    assert other["step"]["steps_per_second"] > 0
    for shares, parts in ((report["shares"], SHARES), (other["shares"], SHARES - {"rays"})):
        assert set(shares) == parts
        assert all(0.0 <= share <= 1.0 for share in shares.values())
        assert sum(shares.values()) == pytest.approx(1.0)


def test_the_ratio_compares_the_same_mixed_step(report: dict) -> None:
    compiled, plain = report["mixed_step"], report["plain_python_step"]
    ratio = compiled["steps_per_second"] / plain["steps_per_second"]
    assert report["ratio_to_plain_python"] == pytest.approx(ratio)


def test_a_quick_bench_leaves_the_start_out(report: dict) -> None:
    assert report["compile_seconds"] == {"cold": None, "cached": None}


def test_the_report_says_what_it_was_measured_on(report: dict) -> None:
    assert report["schema"] == 1
    assert report["version"] == aimbot_lab.__version__
    assert set(report["machine"]) == {"cpu", "cpu_count", "python", "numba", "numpy"}
    assert all(report["machine"].values())


def test_without_json_tables_go_to_stdout_and_progress_to_stderr() -> None:
    result = run()
    assert re.search(r"^world +target +threads +1 +16$", result.stdout, re.MULTILINE)
    for part in SHARES:
        assert re.search(rf"^{part} +[\d.]+% +[\d.e-]+$", result.stdout, re.MULTILINE), part
    assert "as plain Python" in result.stdout
    assert "taking a step apart" in result.stderr
    assert "taking a step apart" not in result.stdout

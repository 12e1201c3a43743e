"""`aimbot-lab bench train`: what its output holds; its figures are not for a test."""

import json

import pytest
from click.testing import CliRunner

import aimbot_lab
from aimbot_lab.bench.train import TINY, of_algorithms
from aimbot_lab.cli.bench import bench

PARTS = ["simulator", "policy", "buffer", "update", "callbacks", "tracking", "rest"]


@pytest.fixture(scope="module")
def report() -> dict:
    result = CliRunner().invoke(bench, ["train", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_both_algorithms_are_measured_and_their_shares_make_up_the_whole(report: dict) -> None:
    measured = [(one["name"], one["net"], one["threads"]) for one in report["variants"]]
    assert sorted(measured) == [("hybrid_ppo", "16x16", 1), ("stable-baselines3", "16x16", 1)]
    for variant in report["variants"]:
        assert list(variant["shares"]) == PARTS
        assert all(share > 0.0 for share in variant["shares"].values())
        assert sum(variant["shares"].values()) == pytest.approx(1.0)
        share = variant["steps_per_second"] / variant["update_steps_per_second"]
        assert share == pytest.approx(variant["shares"]["update"])
    ours, theirs = report["variants"]
    assert ours["matrix_products_steps_per_second"] > ours["steps_per_second"]
    assert theirs["matrix_products_steps_per_second"] is None
    ratio = pytest.approx(ours["steps_per_second"] / theirs["steps_per_second"])
    assert report["ratio_to_stable_baselines3"] == {"16x16": ratio}


def test_the_report_says_what_it_was_measured_on(report: dict) -> None:
    assert report["version"] == aimbot_lab.__version__
    assert set(report["machine"]) == {"cpu", "cpu_count", "python", "numba", "numpy"}
    settings = {"num_envs": 16, "n_steps": 16, "batch_size": 128, "n_epochs": 1}
    assert report["settings"] == settings


def test_the_variants_differ_in_the_algorithm_alone() -> None:
    ours, theirs = (TINY.training(variant) for variant in of_algorithms(TINY))
    assert [ours.train.algo, theirs.train.algo] == ["hybrid_ppo", "ppo"]
    assert {**vars(ours.train), "algo": "ppo"} == vars(theirs.train)
    assert (ours.env, ours.lessons, ours.seed) == (theirs.env, theirs.lessons, theirs.seed)

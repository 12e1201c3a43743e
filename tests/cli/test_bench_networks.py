"""`aimbot-lab bench train --network`: what its output holds; its figures are not for a test."""

import json
import re

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.train import OF_NETWORKS, PLAIN, RECURRENT, SHARED, of_networks
from aimbot_lab.cli.bench import bench

RATIOS = {"recurrent_ppo": RECURRENT, "recurrent_ppo_shared": SHARED, "plain": PLAIN}


def test_a_row_says_how_many_times_as_fast_it_is_as_each_of_the_others() -> None:
    result = CliRunner().invoke(bench, ["train", "--network", "memory", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    rows = {row["network"]: row for row in json.loads(result.stdout)["rows"]}
    assert list(rows) == ["memory", PLAIN, RECURRENT, SHARED]
    for row in rows.values():
        assert row["threads"] == 1
        assert row["ratio_to_one_thread"] == 1.0
        assert sum(row["shares"].values()) == pytest.approx(1.0)
        for key, other in RATIOS.items():
            ratio = row["steps_per_second"] / rows[other]["steps_per_second"]
            assert row[f"ratio_to_{key}"] == pytest.approx(ratio)
    assert {rows[name]["engine"] for name in (RECURRENT, SHARED)} == {"torch"}
    assert "repeat 1 of 1: 4 trainings" in result.stderr


def test_without_json_it_is_a_table() -> None:
    result = CliRunner().invoke(bench, ["train", "--network", "all", "--quick"])
    assert result.exit_code == 0, result.output
    for name in ("all", PLAIN, RECURRENT, SHARED):
        line = rf"^{name} +1 +(torch|fused) +[\d,.]+ +[\d,.]+( +[\d.]+%){{7}}( +[\d.]+){{4}}$"
        assert re.search(line, result.stdout, re.MULTILINE)


@pytest.mark.parametrize("network", ["memory", "units", "all"])
def test_what_is_compared_differs_in_the_agent_alone(network: str) -> None:
    variants = of_networks(network, OF_NETWORKS)
    plans = [OF_NETWORKS.training(one) for one in variants if one.threads == 1]
    ours = plans[0]
    for other in plans:
        assert (other.env, other.lessons, other.seed) == (ours.env, ours.lessons, ours.seed)
        for name in ("n_steps", "batch_size", "n_epochs", "learning_rate", "total_steps"):
            assert getattr(other.train, name) == getattr(ours.train, name)
    assert ours.train.batch_size == 4096
    assert {one.threads for one in variants} == {1, 2}

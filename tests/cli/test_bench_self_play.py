"""`aimbot-lab bench train --world`: what its output holds; its figures are not for a test."""

import json
import re

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.self_play import measurement
from aimbot_lab.bench.self_play.measurement import SelfPlayBench, bench_self_play
from aimbot_lab.bench.self_play.plan import SELF_PLAY, SelfPlayBenchPlan, full
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.lap import OPPONENTS, PARTS
from aimbot_lab.cli.bench.command import bench
from aimbot_lab.cli.bench.self_play import self_play_document
from aimbot_lab.foundation.errors import ConfigurationError


@pytest.fixture(scope="module")
def printed_and_found() -> tuple[str, SelfPlayBench]:
    """What the command prints, and what it measured."""
    found: list[SelfPlayBench] = []

    def kept(plan: SelfPlayBenchPlan, say: Say) -> SelfPlayBench:
        found.append(bench_self_play(plan, say))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "bench_self_play", kept)
        result = CliRunner().invoke(bench, ["train", "--world", "duel", "--quick"])
    assert result.exit_code == 0, result.output
    assert "repeat 1 of 1: 2 trainings" in result.stderr
    return result.stdout, found[0]


def test_self_play_stands_beside_the_hardest_target_and_its_opponents_take_a_share(
    printed_and_found: tuple[str, SelfPlayBench],
) -> None:
    report = json.loads(json.dumps(self_play_document(printed_and_found[1])))
    assert (report["schema"], report["world"]) == (1, "duel")
    ours, other = report["rows"]
    assert (ours["name"], other["name"]) == (SELF_PLAY, "attack")
    for row in (ours, other):
        assert (row["net"], row["threads"], row["engine"]) == ("16", 1, "fused")
        assert list(row["shares"]) == [*PARTS, OPPONENTS]
        assert sum(row["shares"].values()) == pytest.approx(1.0)
        share = row["steps_per_second"] / row["update_steps_per_second"]
        assert share == pytest.approx(row["shares"]["update"])
    assert ours["shares"][OPPONENTS] > 0.0 == other["shares"][OPPONENTS]
    ratio = ours["steps_per_second"] / other["steps_per_second"]
    assert ours["ratio_to_hardest_target"] == pytest.approx(ratio)
    one, many = report["acting"]
    assert [(a["rows"], a["networks"], a["threads"]) for a in (one, many)] == [(8, 1, 1), (8, 8, 1)]
    ratio = many["seconds_per_step"] / one["seconds_per_step"]
    assert many["ratio_to_one_network"] == pytest.approx(ratio)


def test_without_json_it_is_tables(printed_and_found: tuple[str, SelfPlayBench]) -> None:
    for line in (
        r"^self-play +16 +1 +fused +[\d,]+ +[\d,]+ +\d+\.\d\d$",
        r"^attack +16 +1 +fused +[\d,]+ +[\d,]+ +1\.00$",
        r"^self-play +16 +1( +[\d.]+%){8}$",
        r"^8 +8 +1 +[\d,]+ +\d+\.\d\d$",
    ):
        assert re.search(line, printed_and_found[0], re.MULTILINE)


def test_both_learn_from_as_many_rows_with_the_same_learner() -> None:
    plan = full("duel")
    assert (plan.ratio, plan.window, plan.at_once) == (0.5, 10, 8)
    own, other = (plan.training(one) for one in plan.variants[:2])
    assert own.train == other.train
    assert plan.world.rows(plan.world.self_play_settings(own.env, plan.ratio)) == 768
    assert other.env.num_envs == 768
    assert plan.steps % plan.batch_size == 0


@pytest.mark.parametrize("world", ["arena", "nowhere"])
def test_a_world_without_self_play_is_refused(world: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--world {world}: .* worlds that have are duel"):
        full(world)


def test_two_benchmarks_at_once_are_refused() -> None:
    result = CliRunner().invoke(bench, ["train", "--world", "duel", "--network", "all"])
    assert result.exit_code == 2
    assert "give one of them" in result.output

"""`aimbot-lab bench train --world`: what its output holds; its figures are not for a test."""

import re

import pytest
from click.testing import CliRunner

from aimbot_lab.bench import train
from aimbot_lab.bench.train import FULL, OPPONENTS, PARTS, SELF_PLAY, of_self_play
from aimbot_lab.bench.turns import Report
from aimbot_lab.cli.bench import bench
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.registry import world_types


@pytest.fixture(scope="module")
def printed_and_found() -> tuple[str, Report]:
    """What the command prints, and what it measured."""
    found: list[Report] = []
    measure = train.bench_self_play

    def kept(*arguments: object) -> Report:
        found.append(measure(*arguments))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "bench_self_play", kept)
        result = CliRunner().invoke(bench, ["train", "--world", "duel", "--quick"])
    assert result.exit_code == 0, result.output
    assert "repeat 1 of 1: 2 trainings" in result.stderr
    return result.stdout, found[0]


def test_self_play_stands_beside_the_hardest_target_and_its_opponents_take_a_share(
    printed_and_found: tuple[str, Report],
) -> None:
    report = printed_and_found[1].document
    assert report["world"] == "duel"
    ours, other = report["rows"]
    assert (ours["name"], other["name"]) == (SELF_PLAY, "attack")
    for row in (ours, other):
        assert (row["net"], row["threads"], row["engine"]) == ("16x16", 1, "fused")
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


def test_without_json_it_is_tables(printed_and_found: tuple[str, Report]) -> None:
    for line in (
        r"^self-play +16x16 +1 +fused +[\d,.]+ +[\d,.]+( +[\d.]+%){8} +[\d.]+$",
        r"^attack +16x16 +1 +fused +[\d,.]+ +[\d,.]+( +[\d.]+%){8} +1\.00$",
        r"^8 +8 +1 +[\de.-]+ +\d+\.\d\d$",
    ):
        assert re.search(line, printed_and_found[0], re.MULTILINE), line


def test_both_learn_from_as_many_rows_with_the_same_learner() -> None:
    own, other = (FULL.training(one) for one in of_self_play("duel", FULL)[:2])
    assert own.train == other.train
    settings = own.self_play
    assert (settings.play_against_latest_model_ratio, settings.window) == (0.5, 10)
    assert settings.at_once == 8
    duel = world_types()["duel"]
    assert duel.rows(duel.self_play_settings(own.env, 0.5)) == 768
    assert other.env.num_envs == 768
    assert 768 * own.train.n_steps % own.train.batch_size == 0
    assert own.train.total_steps == 9 * 768 * own.train.n_steps


@pytest.mark.parametrize("world", ["arena", "nowhere"])
def test_a_world_without_self_play_is_refused(world: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--world {world}: .* worlds that have are duel"):
        of_self_play(world, FULL)


def test_two_benchmarks_at_once_are_refused() -> None:
    result = CliRunner().invoke(bench, ["train", "--world", "duel", "--network", "all"])
    assert result.exit_code == 2
    assert "give one of them" in result.output

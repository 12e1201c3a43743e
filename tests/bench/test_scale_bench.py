"""`aimbot-lab bench scale`: what its output holds; its figures are not for a test."""

import re

import pytest
from click.testing import CliRunner

from aimbot_lab.bench import scale
from aimbot_lab.bench.scale import FULL, TINY, Turn, bench_scale, of_net, speeds
from aimbot_lab.bench.train import Sizes, Variant
from aimbot_lab.bench.turns import Report, Say
from aimbot_lab.cli.bench import bench

ONE, TWO, _, THREADS = of_net("64x64", FULL)


def turn(rollout_ms: float, processor_ms: float = 100.0, exchange_ms: float = 0.0) -> Turn:
    return Turn(rollout_ms, processor_ms, processor_ms / 2, exchange_ms, 34.0)


@pytest.fixture(scope="module")
def printed_and_found() -> tuple[str, Report]:
    """What the command prints, and what it measured, with real processes."""
    found: list[Report] = []

    def kept(sizes: Sizes, say: Say) -> Report:
        found.append(bench_scale(sizes, say))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale, "bench_scale", kept)
        result = CliRunner().invoke(bench, ["scale", "--quick"])
    assert result.exit_code == 0, result.output
    assert "16x16: 3 processes begin" in result.stderr
    return result.stdout, found[0]


@pytest.mark.scale
def test_processes_take_turns_and_their_exchange_takes_a_share(
    printed_and_found: tuple[str, Report],
) -> None:
    report = printed_and_found[1].document
    one, two = report["rows"]
    assert [(row["processes"], row["threads"], row["net"]) for row in (one, two)] == [
        (1, 1, "16x16"),
        (2, 1, "16x16"),
    ]
    assert one["ratio_to_one_process"]["mean"] == 1.0
    assert (one["exchange_share"], one["exchanges"]) == (0.0, 0)
    assert 0.0 < two["exchange_share"] < 1.0
    minibatches = TINY.steps // TINY.batch_size * TINY.n_epochs
    assert two["exchanges"] >= minibatches
    for row in (one, two):
        assert row["steps_per_second"] > 0.0
        assert row["processor_us_per_step"] > 0.0


@pytest.mark.scale
def test_the_ways_of_an_exchange_stand_beside_all_reduce(
    printed_and_found: tuple[str, Report],
) -> None:
    (one,) = printed_and_found[1].document["exchanges"]
    assert one["floats"] == 1000
    times, ratios = one["milliseconds"], one["ratio_to_all_reduce"]
    assert set(times) == {"tree by doubling", "tree by all_gather", "all_reduce"}
    assert set(ratios) == set(times) - {"all_reduce"}
    for way, ratio in ratios.items():
        assert ratio == pytest.approx(times[way] / times["all_reduce"])


@pytest.mark.scale
def test_without_json_it_is_tables(printed_and_found: tuple[str, Report]) -> None:
    text = printed_and_found[0]
    number = r"[\d.,e+-]+"  # of any size: the machine may be busy
    ratio = rf"{number} \[{number}, {number}\]"
    for line in (
        rf"^2 +1 +16x16 +{number} +[\d.]+ %( +{number}){{3}} +{ratio}( +{number}){{2}} +{ratio}$",
        rf"^1,000( +{number}){{5}}$",
    ):
        assert re.search(line, text, re.MULTILINE), line


def test_each_turn_is_compared_with_the_one_of_one_process_beside_it() -> None:
    drifting: dict[Variant, list[Turn]] = {
        ONE: [turn(100.0), turn(200.0), turn(400.0)],  # the machine becomes busier
        TWO: [turn(50.0, exchange_ms=5.0), turn(100.0, exchange_ms=10.0), turn(200.0)],
        THREADS: [turn(100.0, 150.0), turn(200.0, 150.0), turn(400.0, 150.0)],
    }
    steps = FULL.steps
    one, two, threads = speeds(steps, drifting)
    assert [*one["ratio_to_one_process"].values()] == pytest.approx([1.0] * 3)
    assert [*two["ratio_to_one_process"].values()] == pytest.approx([2.0] * 3)
    assert two["fastest_ratio"] == pytest.approx(2.0)
    assert two["fastest_steps_per_second"] == pytest.approx(1e3 * steps / 50.0)
    assert two["exchange_share"] == pytest.approx(15.0 / 350.0)
    assert two["steps_per_second"] == pytest.approx(steps / 0.1)
    assert [*threads["processor_ratio"].values()] == pytest.approx([1.5] * 3)
    assert threads["processor_us_per_step"] == pytest.approx(1e3 * 150.0 / steps)

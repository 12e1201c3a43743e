"""`aimbot-lab bench scale`: what its output holds; its figures are not for a test."""

import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner

from aimbot_lab.bench.scale import group, measurement
from aimbot_lab.bench.scale.measurement import ScaleBench, Turn, bench_scale, speeds
from aimbot_lab.bench.scale.plan import FULL, QUICK, ScaleBenchPlan, ScaleVariant
from aimbot_lab.bench.scale.timed_exchange import TimedExchange
from aimbot_lab.bench.speed import Say
from aimbot_lab.bench.timing.ratios import mean_ratio
from aimbot_lab.cli.bench.command import bench
from aimbot_lab.cli.bench.scale import _document
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.processes.exchange import Alone

EXCHANGES = 2  # of a rollout, beside those of its minibatches: what ended, and advantages
LAYERS = (64, 64)
ONE, TWO, THREADS = (ScaleVariant(*who, LAYERS) for who in ((1, 1), (2, 1), (1, 2)))


def turn(rollout_ms: float, processor_ms: float = 100.0, exchange_ms: float = 0.0) -> Turn:
    return Turn(rollout_ms, processor_ms, processor_ms / 2, exchange_ms, 34.0)


@pytest.fixture(scope="module")
def printed_and_found() -> tuple[str, ScaleBench]:
    """What the command prints, and what it measured, with real processes."""
    found: list[ScaleBench] = []

    def kept(plan: ScaleBenchPlan, say: Say) -> ScaleBench:
        found.append(bench_scale(plan, say))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "bench_scale", kept)
        result = CliRunner().invoke(bench, ["scale", "--quick"])
    assert result.exit_code == 0, result.output
    assert "16x16: 3 processes begin" in result.stderr
    return result.stdout, found[0]


@pytest.mark.slow
def test_processes_take_turns_and_their_exchange_takes_a_share(
    printed_and_found: tuple[str, ScaleBench],
) -> None:
    report = json.loads(json.dumps(_document(printed_and_found[1])))
    one, two = report["rows"]
    assert [(row["processes"], row["threads"], row["net"]) for row in (one, two)] == [
        (1, 1, "16x16"),
        (2, 1, "16x16"),
    ]
    assert one["ratio_to_one_process"]["mean"] == 1.0
    assert (one["exchange_share"], one["exchanges"]) == (0.0, 0)
    assert 0.0 < two["exchange_share"] < 1.0
    training = QUICK.training
    minibatches = training.steps // training.batch_size * training.n_epochs
    beside = two["exchanges"] - (minibatches + EXCHANGES)
    assert 0.0 <= beside <= 1.0, "a checkpoint that is due in a rollout takes another one"
    for row in (one, two):
        assert row["steps_per_second"] > 0.0
        assert row["processor_us_per_step"] > 0.0


def test_the_ways_of_an_exchange_stand_beside_all_reduce(
    printed_and_found: tuple[str, ScaleBench],
) -> None:
    (one,) = _document(printed_and_found[1])["exchanges"]
    assert one["floats"] == 1000
    times, ratios = one["milliseconds"], one["ratio_to_all_reduce"]
    assert set(times) == {"tree by doubling", "tree by all_gather", "all_reduce"}
    assert set(ratios) == set(times) - {"all_reduce"}
    for way, ratio in ratios.items():
        assert ratio == pytest.approx(times[way] / times["all_reduce"])


def test_without_json_it_is_tables(printed_and_found: tuple[str, ScaleBench]) -> None:
    text = printed_and_found[0]
    ratio = r"\d+\.\d\d \[\d+\.\d\d, \d+\.\d\d\]"
    for line in (
        rf"^16x16 +2 +1 +[\d,]+ +{ratio} +[\d,]+ +\d+\.\d\d +[\d.]+% +[\d.]+ +{ratio}$",
        r"^1,000 +all_reduce +\d+\.\d{3} +1\.00$",
    ):
        assert re.search(line, text, re.MULTILINE), line


def test_the_full_bench_measures_what_the_pages_quote() -> None:
    rows = [list(FULL.variants(layers)) for layers in FULL.nets]
    assert [[(one.processes, one.threads) for one in own] for own in rows] == [
        [(1, 1), (2, 1), (4, 1), (1, 2)]
    ] * 2
    assert [own[0].net for own in rows] == ["64x64", "128x128"]
    assert FULL.floats == (17_000, 100_000)
    train = FULL.training.plan().train
    assert (FULL.training.steps, train.batch_size, train.n_epochs) == (32_768, 4096, 4)


def test_fastest_turns_are_compared_whenever_they_were() -> None:
    rows = speeds(FULL, {ONE: [turn(100.0), turn(200.0)], TWO: [turn(150.0), turn(60.0)]})
    assert [one.fastest_ratio for one in rows] == pytest.approx([1.0, 100.0 / 60.0])


def test_each_turn_is_compared_with_the_one_of_one_process_beside_it() -> None:
    drifting = {
        ONE: [turn(100.0), turn(200.0), turn(400.0)],  # the machine becomes busier
        TWO: [turn(50.0, exchange_ms=5.0), turn(100.0, exchange_ms=10.0), turn(200.0)],
        THREADS: [turn(100.0, 150.0), turn(200.0, 150.0), turn(400.0, 150.0)],
    }
    one, two, threads = speeds(FULL, drifting)
    assert one.ratio_to_one_process == pytest.approx((1.0, 1.0, 1.0))
    assert two.ratio_to_one_process == pytest.approx((2.0, 2.0, 2.0))
    assert two.fastest_ratio == pytest.approx(2.0)
    assert two.fastest_steps_per_second == pytest.approx(1e3 * FULL.training.steps / 50.0)
    assert two.exchange_share == pytest.approx(15.0 / 350.0)
    assert two.steps_per_second == pytest.approx(FULL.training.steps / 0.1)
    assert threads.processor_ratio == pytest.approx((1.5, 1.5, 1.5))
    assert threads.processor_us_per_step == pytest.approx(1e3 * 150.0 / FULL.training.steps)


def test_an_exchange_is_timed_and_says_what_it_would() -> None:
    timed = TimedExchange(Alone())
    assert timed.gather(b"mine") == [b"mine"]
    assert timed.gather_arrays(np.arange(2)).tolist() == [[0, 1]]
    summed = timed.sum_up(np.ones((2, 3), np.float32), np.ones((2, 1)), shards=2)
    assert summed.gradient.tolist() == [2.0, 2.0, 2.0]
    assert timed.place == Alone.place
    assert timed.calls == 3
    assert timed.seconds > 0.0


def test_a_process_that_fails_is_reported_in_a_line() -> None:
    with (
        pytest.raises(LabError, match=rf"^{measurement.WAYS} failed: .*ValueError") as error,
        group.started(measurement.WAYS, [], processes=1) as one,
    ):
        one.answers("many floats")
    assert "\n" not in str(error.value)


def test_a_mean_ratio_is_geometric_and_its_interval_is_student_s() -> None:
    assert mean_ratio([0.5, 2.0]).mean == pytest.approx(1.0)
    assert mean_ratio([3.0]).mean == pytest.approx(3.0)
    assert math.isnan(mean_ratio([3.0]).lower)
    found = mean_ratio([math.exp(k) for k in (1.0, 2.0, 3.0)])
    half = 4.302653 / math.sqrt(3.0)  # t of 2 degrees, times the deviation 1
    assert found == pytest.approx((math.exp(2.0), math.exp(2.0 - half), math.exp(2.0 + half)))


def test_ratios_turned_round_have_the_interval_turned_round() -> None:
    ratios = [1.1, 1.4, 1.3, 0.9]
    found, turned = mean_ratio(ratios), mean_ratio([1.0 / one for one in ratios])
    assert (1.0 / turned.mean, 1.0 / turned.upper, 1.0 / turned.lower) == pytest.approx(found)

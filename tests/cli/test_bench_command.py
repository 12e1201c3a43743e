"""`aimbot-lab bench`: simulators, networks and self-play; figures are not for a test."""

import json
import re
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

import aimbot_lab
from aimbot_lab.bench import sim, train
from aimbot_lab.bench.sim import QUICK
from aimbot_lab.bench.train import FULL as FULL_TRAINING
from aimbot_lab.bench.train import (
    OF_NETWORKS,
    OPPONENTS,
    PARTS,
    SELF_PLAY,
    TINY,
    of_algorithms,
    of_networks,
    of_self_play,
)
from aimbot_lab.bench.turns import Report, Table
from aimbot_lab.cli.bench import bench, show
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.registry import world_types

FEW = replace(QUICK, targets=("walk",), others=("gorge",))  # of which one world is compiled
PLAYED = ("gorge", "walk"), ("gorge", "score")
SHARES = {"movement", "reward", "observation", "reset", "rest"}


class Measured(NamedTuple):
    """What a command prints and says, and what it measured."""

    printed: str
    said: str
    report: dict[str, Any]


def measured(module: ModuleType, measure: str, *words: str) -> Measured:
    """Of `bench WORDS --quick`, which shows what `module.measure` finds."""
    found: list[Report] = []
    real = getattr(module, measure)

    def kept(*arguments: object) -> Report:
        found.append(real(*arguments))
        return found[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, measure, kept)
        result = CliRunner().invoke(bench, [*words, "--quick"])
    assert result.exit_code == 0, result.output
    return Measured(result.stdout, result.stderr, found[0].document)


@pytest.fixture(scope="module")
def simulators() -> Measured:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim, "QUICK", FEW)
        patch.setattr(sim, "default_type", lambda: world_types()["gorge"])
        return measured(sim, "bench_sim", "sim")


@pytest.fixture(scope="module")
def self_play() -> Measured:
    return measured(train, "bench_self_play", "train", "--world", "duel")


@pytest.fixture
def report(simulators: Measured) -> dict[str, Any]:
    return simulators.report


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


def test_the_shares_of_a_step_make_up_the_whole(report: dict) -> None:
    other = report["other_worlds"]["gorge"]
    assert other["step"]["steps_per_second"] > 0
    for shares in (report["shares"], other["shares"]):
        assert set(shares) == SHARES
        assert all(0.0 <= share <= 1.0 for share in shares.values())
        assert sum(shares.values()) == pytest.approx(1.0)


def test_the_ratio_compares_the_same_mixed_step(report: dict) -> None:
    compiled, plain = report["mixed_step"], report["plain_python_step"]
    ratio = compiled["steps_per_second"] / plain["steps_per_second"]
    assert report["ratio_to_plain_python"] == pytest.approx(ratio)


def test_tables_go_to_stdout_and_progress_to_stderr(simulators: Measured) -> None:
    printed, said, _ = simulators
    assert re.search(r"^world +target +threads +1 +16$", printed, re.MULTILINE)
    for part in SHARES:
        assert re.search(rf"^{part} +[\d.]+ % +[\d.,e-]+$", printed, re.MULTILINE), part
    assert "as plain Python" in printed
    assert "taking a step apart" in said
    assert "taking a step apart" not in printed


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


def test_self_play_stands_beside_the_hardest_target_and_its_opponents_take_a_share(
    self_play: Measured,
) -> None:
    assert "repeat 1 of 1: 2 trainings" in self_play.said
    report = self_play.report
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
    line = r"^self-play +16x16 +1 +fused +[\d,.]+ +[\d,.]+( +[\d.]+ %){8} +[\d.]+$"
    assert re.search(line, self_play.printed, re.MULTILINE)


def test_both_learn_from_as_many_rows_with_the_same_learner() -> None:
    own, other = (FULL_TRAINING.training(one) for one in of_self_play("duel", FULL_TRAINING)[:2])
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
        of_self_play(world, FULL_TRAINING)


def test_two_benchmarks_at_once_are_refused() -> None:
    result = CliRunner().invoke(bench, ["train", "--world", "duel", "--network", "all"])
    assert result.exit_code == 2
    assert "give one of them" in result.output


@pytest.mark.parametrize("markdown", [True, False])
def test_a_row_without_a_column_of_another_has_a_gap_there(
    capsys: pytest.CaptureFixture[str], markdown: bool
) -> None:
    rows = [{"row": "td3", "time": 1.25}, {"row": "ppo", "hybrid": 3.5, "time": 1.5}]
    show(Report({}, [Table("Rows", rows)]), as_json=False, markdown=markdown)
    lines = [line.replace("|", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert ["row", "time", "hybrid"] in lines
    assert ["td3", "1.25", "-"] in lines
    assert ["ppo", "1.50", "3.50"] in lines


@pytest.fixture(scope="module")
def trainings() -> dict[str, Any]:
    result = CliRunner().invoke(bench, ["train", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_both_algorithms_are_measured_and_their_shares_make_up_the_whole(trainings: dict) -> None:
    measured = [(one["name"], one["net"], one["threads"]) for one in trainings["variants"]]
    assert sorted(measured) == [("hybrid_ppo", "16x16", 1), ("stable-baselines3", "16x16", 1)]
    for variant in trainings["variants"]:
        assert list(variant["shares"]) == [*PARTS]
        assert all(share > 0.0 for share in variant["shares"].values())
        assert sum(variant["shares"].values()) == pytest.approx(1.0)
        share = variant["steps_per_second"] / variant["update_steps_per_second"]
        assert share == pytest.approx(variant["shares"]["update"])
    ours, theirs = trainings["variants"]
    assert ours["matrix_products_steps_per_second"] > ours["steps_per_second"]
    assert theirs["matrix_products_steps_per_second"] is None
    ratio = pytest.approx(ours["steps_per_second"] / theirs["steps_per_second"])
    assert trainings["ratio_to_stable_baselines3"] == {"16x16": ratio}


def test_the_report_says_what_it_was_measured_on(trainings: dict) -> None:
    assert trainings["version"] == aimbot_lab.__version__
    assert set(trainings["machine"]) == {"cpu", "cpu_count", "python", "numba", "numpy"}
    settings = {"num_envs": 16, "n_steps": 16, "batch_size": 128, "n_epochs": 1}
    assert trainings["settings"] == settings


def test_the_variants_differ_in_the_algorithm_alone() -> None:
    ours, theirs = (TINY.training(variant) for variant in of_algorithms(TINY))
    assert [ours.train.algo, theirs.train.algo] == ["hybrid_ppo", "ppo"]
    assert {**vars(ours.train), "algo": "ppo"} == vars(theirs.train)
    assert (ours.env, ours.lessons, ours.seed) == (theirs.env, theirs.lessons, theirs.seed)

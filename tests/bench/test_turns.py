"""The harness of benchmarks, what they simulate of ratings and rules, and a peer."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from echoing import echo

from aimbot_lab.bench import sim, simulations
from aimbot_lab.bench.simulations import (
    RatingsPlan,
    RulesPlan,
    bench_ratings,
    bench_rules,
    drawn_table,
    window_promotions,
)
from aimbot_lab.bench.train import CURRICULUM as OURS
from aimbot_lab.bench.train import THEIRS, Stopwatch, ratio
from aimbot_lab.bench.turns import Report, Table, by_turns, group, mean_ratio, printed_number, turns
from aimbot_lab.cli.bench import show
from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.ratings import expected_scores
from aimbot_lab.training.plain_scripts import learn_plain_ppo
from aimbot_lab.training.settings import TrainingPlan


def test_every_other_turn_goes_backwards() -> None:
    called: list[str] = []
    variants = {name: lambda name=name: called.append(name) or len(called) for name in "ab"}
    found = by_turns(variants, 3, say=called.append, warm_up=True)
    assert called == [
        *("a", "b", "repeat 1 of 3: 2 variants", "a", "b"),
        *("repeat 2 of 3: 2 variants", "b", "a", "repeat 3 of 3: 2 variants", "a", "b"),
    ]
    assert found == {"a": [4, 8, 10], "b": [5, 7, 11]}
    assert list(turns("ab", 2, alternate=False)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_a_mean_ratio_is_geometric_and_its_interval_is_student_s() -> None:
    assert mean_ratio([0.5, 2.0])["mean"] == pytest.approx(1.0)
    assert mean_ratio([3.0])["mean"] == pytest.approx(3.0)
    assert math.isnan(mean_ratio([3.0])["lower"])
    found = [*mean_ratio([math.exp(k) for k in (1.0, 2.0, 3.0)]).values()]
    half = 4.302653 / math.sqrt(3.0)  # t of 2 degrees, times the deviation 1
    assert found == pytest.approx([math.exp(2.0), math.exp(2.0 - half), math.exp(2.0 + half)])


def test_a_table_has_the_values_of_the_document_under_their_keys() -> None:
    row = {
        "name": "memory",
        "steps_per_second": 12345.6,
        "shares": {"update": 0.5},
        "ratio": {"mean": 1.5, "lower": 1.25, "upper": 1.75},
        "share": {"mean": 0.125, "lower": 0.05, "upper": 0.2},
        "steps": {"median": None, "lowest": 3, "highest": None},
        "single": mean_ratio([3.0]),
        "milliseconds": {"tree": 0.01},
        "seeds": 1000,
        "passed": True,
        "products": None,
    }
    assert Table("title", [row]).cells() == [
        {
            "name": "memory",
            "steps per second": "12,346",
            "update": "50.0 %",
            "ratio": "1.50 [1.25, 1.75]",
            "share": "12.5 % [5.00, 20.0]",
            "steps": "never [3, never]",
            "single": "3.00",
            "milliseconds, tree": "0.0100",
            "seeds": "1,000",
            "passed": "yes",
            "products": "-",
        }
    ]


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Shop:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def sell(self, seconds: float) -> str:
        self._clock.now += seconds
        return self.wrap(seconds=1.0)

    def wrap(self, seconds: float) -> str:
        self._clock.now += seconds
        return "parcel"

    def burn(self) -> None:
        self._clock.now += 5.0
        raise OSError("fire")


def test_each_moment_counts_for_the_innermost_watched_call() -> None:
    clock = Clock()
    shop, watch = Shop(clock), Stopwatch(clock.perf_counter)
    watch.watch(shop, "sell burn", "counter")
    watch.watch(shop, "wrap", "table")
    shop.wrap(seconds=100.0)
    watch.begin()
    assert shop.sell(2.0) == "parcel"
    clock.now += 0.5
    with pytest.raises(OSError, match="fire"):
        shop.burn()
    shop.wrap(seconds=4.0)
    assert watch.end() == {"counter": 7.0, "table": 5.0, "rest": 0.5}
    assert watch.calls == {"counter": 2, "table": 2}


def test_the_cold_start_has_an_empty_cache_and_the_others_what_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[list[str]] = []

    def number(code: str, **environment: str) -> float:
        if code != sim.START:
            assert environment == {"NUMBA_DISABLE_JIT": "1"}
            return 1.0
        folder = Path(environment["NUMBA_CACHE_DIR"])
        found.append(sorted(os.listdir(folder)))
        (folder / f"kernel {len(found)}").touch()
        return [9.0, 0.9, 0.7, 0.8][len(found) - 1]

    monkeypatch.setattr(sim, "printed_number", number)
    monkeypatch.setattr(sim, "_speeds", lambda *_: [])
    step = {"shares": {}, "step": {"steps_per_second": 1.0}}
    monkeypatch.setattr(sim, "_shares", lambda *_: step)
    monkeypatch.setattr(sim, "_tables", lambda _: [])
    report = sim.bench_sim(replace(sim.QUICK, others=(), starts=True), lambda _: None)
    assert report.document["compile_seconds"] == {"cold": 9.0, "cached": 0.7}
    assert found[0] == []
    assert all("kernel 1" in folder for folder in found[1:])


def test_a_measurement_that_fails_is_an_error_in_one_line() -> None:
    with pytest.raises(
        LabError, match=r"^a measurement in .* failed: .*No module named 'nothing'$"
    ):
        printed_number("import nothing")
    assert printed_number("import os; print(os.environ['NUMBER'])", NUMBER="2.5") == 2.5


def test_all_processes_of_a_group_answer_until_one_fails_in_a_line() -> None:
    with group(echo, ("said",), ({"RANK": "3"},)) as ask:
        assert ask(7) == [{"said": 7, "rank": "3"}]
        with pytest.raises(LabError, match=r"^a process of the benchmark failed: .*it broke"):
            ask("break")


CURRICULUM = """
name: pole
env: {world: gymnasium, id: CartPole-v1, num_envs: 4, win: {return_above: 15}}
lessons:
  - name: up
    parameters:
      length: {sampler_type: uniform, sampler_parameters: {min_value: 0.3, max_value: 0.9}}
      gravity: 9.0
    completion_criteria: {threshold: 0.2, min_lesson_length: 20}
train: {algo: ppo, total_steps: 2048, n_steps: 32, batch_size: 64, network: {layers: [4]}}
"""


def plan(folder: Path, *overrides: str) -> TrainingPlan:
    (folder / "pole.yaml").write_text(CURRICULUM, encoding="utf-8")
    config = load_curriculum(folder / "pole.yaml", overrides).config
    return TrainingPlan(config.seed, config.env, config.lessons, config.train)


def test_steps_that_are_spent_before_the_proof_are_no_pass(tmp_path: Path) -> None:
    hard = "lessons.0.completion_criteria.threshold=0.99"
    steps, _, passed = learn_plain_ppo(plan(tmp_path, hard, "train.total_steps=256"))
    assert (passed, steps) == (False, 256)


def test_the_ratio_is_that_of_seeds_with_which_both_passed() -> None:
    def one(learner: str, seed: int, seconds: float, passed: bool = True) -> dict:
        return {"learner": learner, "seed": seed, "seconds": seconds, "passed": passed}

    pairs = [one(OURS, 1, 2.0), one(THEIRS, 1, 6.0), one(OURS, 2, 1.0), one(THEIRS, 2, 5.0)]
    failed = [one(OURS, 3, 1.0), one(THEIRS, 3, 90.0, passed=False)]
    assert ratio([*pairs, *failed]) == 4.0
    assert ratio(failed) is None


def test_a_document_has_null_where_a_single_pair_has_no_interval(
    capsys: pytest.CaptureFixture,
) -> None:
    show(Report({"ratio": mean_ratio([3.0]), "rows": [{"a": math.inf}]}, []), as_json=True)
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["ratio"]["lower"] is None
    assert found["rows"] == [{"a": None}]


def test_a_peer_is_refused_before_the_first_training() -> None:
    refused = CliRunner().invoke(cli, ["bench", "peer", "goto"], standalone_mode=False)
    assert "env: must be a Gymnasium environment" in str(refused.exception)
    assert refused.stderr == ""


def test_the_command_reports_both_and_their_ratio(tmp_path: Path) -> None:
    plan(tmp_path)
    words = ["bench", "peer", str(tmp_path / "pole.yaml"), "--seeds", "1"]
    document = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert [one["learner"] for one in document["trainings"]] == [OURS, THEIRS]
    assert document["ratio"] > 0


TINY = RatingsPlan(
    players=4, games=30, tables=5, cycle_players=6, cycle_tables=4, drawn_tables=19, draws=(0, 0.5)
)


def test_a_drawn_table_has_the_games_and_the_scores_that_were_asked_for() -> None:
    scores = expected_scores(100.0 * np.arange(4))
    counts = drawn_table(scores, 40_000, 0.5, np.random.default_rng(1))
    found = (counts[:, :, 0] + 0.5 * counts[:, :, 1]) / 40_000
    off_diagonal = ~np.eye(4, dtype=bool)
    assert (counts.sum(axis=2)[off_diagonal] == 40_000).all()
    np.testing.assert_allclose(found[off_diagonal], scores[off_diagonal], atol=0.01)
    np.testing.assert_array_equal(counts[:, :, 0], counts[:, :, 2].T)
    assert counts[:, :, 1][off_diagonal].min() > 0


def test_the_simulation_tells_shares_of_every_kind() -> None:
    told: list[str] = []
    found = bench_ratings(TINY, told.append)
    document = found.document
    assert len(document["coverage"]) == 4
    assert len(document["cycles"]) == 6
    assert len(told) == 10
    assert all(0.0 <= one["share"] <= 1.0 for one in document["coverage"] + document["cycles"])
    assert bench_ratings(TINY, told.append) == found


SMALL = RulesPlan(
    thresholds=(0.6, 0.9),
    lessons=300,
    episodes=1500,
    climb_episodes=4000,
    climb_lessons=20,
    watched_agents=40,
    watched_episodes=3000,
)


def test_evidence_keeps_alpha_and_the_window_fails_the_same_test() -> None:
    found = bench_rules(SMALL, lambda line: None).document
    most = SMALL.alpha + 3 * np.sqrt(SMALL.alpha * (1 - SMALL.alpha) / SMALL.lessons)
    rates = [(one["threshold"], one["rate"]) for one in found["false_promotions"]]
    assert rates == [(0.6, 0.6), (0.6, 0.55), (0.9, 0.9), (0.9, 0.85)]
    for one in found["false_promotions"]:
        assert one["evidence"] <= most
        assert one["last_100"] > 0.5
    evidence = [one["evidence"] for one in found["delays"]]
    assert evidence == sorted(evidence[:3], reverse=True) + evidence[3:]
    assert found["watching"]["false_reports"] <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 40)


def test_the_window_promotes_at_its_first_mean_above_the_threshold() -> None:
    won = np.zeros((300, 2), np.bool_)
    won[40:, 0] = True
    assert window_promotions(won, 0.7).tolist() == [111, simulations.NEVER]


def test_the_command_tells_the_same_in_words_and_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Report({"seeds": 1000}, [Table("found", [{"seeds": 1000}])])
    monkeypatch.setattr(simulations, "bench_rules", lambda _plan, _say: found)
    said = CliRunner().invoke(cli, ["bench", "rules"]).stdout
    assert "1,000" in said
    document = json.loads(CliRunner().invoke(cli, ["bench", "rules", "--json"]).stdout)
    assert document["seeds"] == 1000

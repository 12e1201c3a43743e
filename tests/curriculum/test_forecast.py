"""Forecasts: the test that ends a lesson, on simulated episodes."""

from math import ceil, log
from typing import Literal

import pytest

from aimbot_lab.curriculum.evidence import STAKES, EvidenceTest
from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.experiment.runs.plan import Forecaster, assumed_win_rates, halfway


def criteria(
    threshold: float, *, least: int = 0, scope: Literal["pooled", "every_cell"] = "pooled"
) -> CompletionCriteria:
    return CompletionCriteria(threshold=threshold, min_lesson_length=least, scope=scope)


def episodes(of: CompletionCriteria, win_rate: float, *shares: float) -> int | None:
    return Forecaster().expect(of, shares or (1.0,), win_rate=win_rate).episodes


def wins_that_pass(threshold: float) -> int:
    """How many wins from the first episode on pass, by the test itself."""
    test = EvidenceTest(threshold, 0.05)
    evidence, count = test.start(), 0
    while test.log_evidence(evidence) < test.log_bound:
        evidence, count = test.fold(evidence, True), count + 1
    return count


@pytest.mark.parametrize("threshold", [0.3, 0.9])
def test_an_agent_that_never_loses_passes_when_the_test_says_so(threshold: float) -> None:
    exact = wins_that_pass(threshold)
    assert exact <= (episodes(criteria(threshold), 1.0) or 0) <= ceil(exact * (1 + 1 / 32))
    best = max(STAKES)
    growth = log((threshold + best * (1 - threshold)) / threshold)
    assert exact >= log(1 / 0.05) / growth  # a bettor with the boldest stake alone would need that


def test_a_lesson_takes_the_longer_the_nearer_the_win_rate_is_to_the_threshold() -> None:
    of = criteria(0.7)
    taken = [episodes(of, rate) or 0 for rate in (0.75, 0.8, 0.9, 1.0)]
    assert taken == sorted(taken, reverse=True)
    assert taken == pytest.approx([570, 150, 36, 17], rel=0.1)  # medians of 4,000 lessons


def test_no_lesson_is_shorter_than_its_least_length() -> None:
    assert episodes(criteria(0.5, least=321), 1.0) == 321


def test_cells_that_must_each_pass_wait_for_the_rarest() -> None:
    pooled = episodes(criteria(0.7), 0.9) or 0
    each = episodes(criteria(0.7, scope="every_cell"), 0.9, 0.9, 0.1) or 0
    assert each > 5 * pooled
    assert episodes(criteria(0.7, scope="every_cell"), 0.9, 1.0) == pooled


def test_what_takes_too_long_is_not_told_as_a_number() -> None:
    assert episodes(criteria(0.9995), 0.9996) is None


def test_a_forecaster_simulates_no_more_than_its_budget() -> None:
    forecaster = Forecaster(most_episodes=150)
    assert forecaster.expect(criteria(0.9), (1.0,), win_rate=1.0).episodes is not None
    assert forecaster.expect(criteria(0.5), (1.0,), win_rate=0.4).episodes is None
    assert forecaster.expect(criteria(0.3), (1.0,), win_rate=1.0).episodes is None
    assert forecaster.expect(criteria(0.9), (1.0,), win_rate=1.0).episodes is not None


@pytest.mark.parametrize("threshold", [0.01, 0.7, 0.999])
def test_assumed_win_rates_rise_from_above_the_threshold_to_one(threshold: float) -> None:
    rates = [threshold, *assumed_win_rates(threshold)]
    assert rates == sorted(set(rates))
    assert rates[-1] == 1.0
    assert len(rates) >= 3
    assert threshold < halfway(threshold) < 1


@pytest.mark.parametrize("share", [0.0, 5e-324, 1e-11])
def test_a_cell_that_is_next_to_never_drawn_takes_too_long(share: float) -> None:
    assert episodes(criteria(0.7, scope="every_cell"), 1.0, 1.0, share) is None

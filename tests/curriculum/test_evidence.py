"""Evidence that ends a lesson, the order of its episodes, and the win rate of one that it ended."""

import os

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.evidence import (
    RESTART_EVERY,
    STAKES,
    Evidence,
    EvidenceTest,
    Outcome,
    StartOrder,
)
from aimbot_lab.curriculum.reports import LessonReport, cell_reports, lesson_report
from aimbot_lab.curriculum.rules import CompletionCriteria, MlAgentsMemory
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from tests.episode_batches import ended_batch

ALPHA, NEVER = 0.05, 10**9
LESSONS = int(os.environ.get("AIMBOT_LAB_STOPPED_LESSONS", "100"))  # of each case
LONGEST = 3000  # episodes after which a lesson is given up
THRESHOLD, LEAST = 0.7, 100
CELLS = Cell("goto", 1), Cell("goto", 2)
CRITERIA = CompletionCriteria(threshold=THRESHOLD, min_lesson_length=LEAST)
LESSON = Lesson(name="one", targets={"goto": 1.0}, completion_criteria=CRITERIA)


Outcomes = npt.NDArray[np.bool_]  # [episodes, lessons]


def played(rate: float | npt.NDArray[np.float64], *, episodes: int, lessons: int) -> Outcomes:
    generator = np.random.default_rng(5)
    return generator.random((episodes, lessons)) < np.broadcast_to(rate, episodes)[:, None]


def promotion_episodes(outcomes: Outcomes, threshold: float) -> npt.NDArray[np.int64]:
    """Episode at which each lesson is promoted, NEVER where it is not."""
    test = EvidenceTest(threshold, ALPHA)
    evidence = test.start(outcomes.shape[1:])
    promoted = np.full(outcomes.shape[1], NEVER)
    for episode, won in enumerate(outcomes, start=1):
        evidence = test.fold(evidence, won)
        passes = test.log_evidence(evidence) >= test.log_bound
        promoted[passes & (promoted == NEVER)] = episode
    return promoted


def naive_promotion_share(outcomes: Outcomes, threshold: float) -> float:
    """Share of lessons that a look at the last 100 episodes after each one promotes."""
    total = np.cumsum(outcomes, axis=0)
    means = (total[100:] - total[:-100]) / 100
    return float((means > threshold).any(axis=0).mean())


def evidence_by_hand(outcomes: list[bool], threshold: float) -> float:
    """The formula of the docstring, bettor by bettor."""
    wealth: list[list[float]] = []
    for number, won in enumerate(outcomes):
        if number % RESTART_EVERY == 0:
            wealth.append([1.0] * len(STAKES))
        for bettor in wealth:
            for index, stake in enumerate(STAKES):
                bettor[index] *= 1 + stake / threshold * (won - threshold)
    if len(outcomes) % RESTART_EVERY == 0:
        wealth.append([1.0] * len(STAKES))
    weights = [1 / ((k + 1) * (k + 2)) for k in range(len(wealth))]
    started = sum(w * sum(held) / len(held) for w, held in zip(weights, wealth, strict=True))
    return started + 1 - sum(weights)


@pytest.mark.parametrize(("threshold", "rate"), [(0.7, 0.7), (0.9, 0.95), (0.5, 0.2)])
@pytest.mark.parametrize("episodes", [0, 256, 700])
def test_the_evidence_is_that_of_a_plain_transcription(
    threshold: float, rate: float, episodes: int
) -> None:
    outcomes = played(rate, episodes=episodes, lessons=1)[:, 0].tolist()
    test = EvidenceTest(threshold, ALPHA)
    evidence = test.start()
    for won in outcomes:
        evidence = test.fold(evidence, won)
    expected = evidence_by_hand(outcomes, threshold)
    assert float(test.log_evidence(evidence)) == pytest.approx(np.log(expected), abs=1e-9)


@pytest.mark.parametrize("threshold", [0.3, 0.9])
def test_an_episode_at_the_threshold_adds_no_evidence_on_average(threshold: float) -> None:
    test = EvidenceTest(threshold, ALPHA)
    evidence = Evidence(np.log(np.array([0.1, 2.0, 0.3, 5.0])), 7)
    won, lost = (np.exp(test.log_evidence(test.fold(evidence, w))) for w in (True, False))
    expected = threshold * won + (1 - threshold) * lost
    assert expected == pytest.approx(np.exp(test.log_evidence(evidence)))


def test_promotion_needs_evidence_not_luck() -> None:
    threshold = 0.7
    outcomes = played(threshold, episodes=3000, lessons=400)
    promoted = float((promotion_episodes(outcomes, threshold) < NEVER).mean())
    sampling_error = 3 * np.sqrt(ALPHA * (1 - ALPHA) / 400)
    assert promoted <= ALPHA + sampling_error
    assert naive_promotion_share(outcomes, threshold) > 0.9


def test_a_bad_beginning_does_not_weigh_for_ever() -> None:
    rates = np.linspace(0.3, 0.97, 20_000)
    outcomes = played(rates, episodes=20_000, lessons=20)
    crossed = int(np.argmax(rates >= 0.7))
    delay = np.median(promotion_episodes(outcomes, 0.7)) - crossed
    assert 0 < delay < 3500
    factors = 1 + np.array(STAKES) / 0.7 * (outcomes[..., None] - 0.7)
    unrestarted = np.logaddexp.reduce(np.cumsum(np.log(factors), axis=0), axis=-1)
    late = crossed + 3500
    assert (unrestarted[:late] - np.log(len(STAKES)) < -np.log(ALPHA)).all()


def test_evidence_stays_finite_after_very_long_streaks_and_with_extreme_thresholds() -> None:
    test = EvidenceTest(0.9, ALPHA)
    evidence = test.start()
    for won in (False, True, False):
        for _ in range(6000):
            evidence = test.fold(evidence, won)
        assert np.isfinite(test.log_evidence(evidence))
    assert float(test.log_evidence(evidence)) < test.log_bound
    for threshold in (1e-300, 1 - 1e-12):
        test = EvidenceTest(threshold, ALPHA)
        evidence = test.fold(test.fold(test.start(), True), False)
        assert np.isfinite(test.log_evidence(evidence))


def stopped(won: Outcomes) -> int:
    """After how many episodes the lesson is passed, or all where it is not."""
    log_evidence = EvidenceTest(THRESHOLD, CRITERIA.alpha).trace(won)
    passed = np.flatnonzero(log_evidence[LEAST - 1 :] >= -np.log(CRITERIA.alpha))
    return LEAST + int(passed[0]) if passed.size else len(won)


def shown(won: Outcomes) -> CurrentLesson:
    lesson = CurrentLesson(LESSON, CELLS, memory=MlAgentsMemory([CRITERIA]))
    for number, one in enumerate(won.tolist()):
        lesson.show(Outcome(one, CELLS[number % 2]))
    return lesson


def reports(rates: npt.NDArray[np.float64]) -> list[tuple[LessonReport, float]]:
    """Of many lessons their reports, each with the true mean rate of the episodes it is about."""
    generator = np.random.default_rng(8)
    found = []
    for _ in range(LESSONS):
        won = generator.random(len(rates)) < rates
        end = stopped(won)
        report = lesson_report(shown(won[:end]), step=end)
        found.append((report, float(rates[end - report.window : end].mean())))
    return found


@pytest.mark.parametrize(
    ("rates", "widest"),
    [
        (np.full(LONGEST, 0.72), 0.18),
        (np.full(LONGEST, 0.9), 0.22),
        (0.2 + 0.7 * np.arange(LONGEST) / LONGEST, 1.0),
    ],
    ids=["near the threshold", "far above it", "of an agent that learns"],
)
def test_an_interval_holds_the_true_mean_rate_and_says_more_than_that_the_lesson_was_passed(
    rates: npt.NDArray[np.float64], widest: float
) -> None:
    found = reports(rates)
    assert np.mean([report.lower <= true <= report.upper for report, true in found]) >= 0.94
    assert np.median([report.upper - report.lower for report, _ in found]) < widest


def test_of_an_agent_that_has_learned_the_window_leaves_out_the_beginning() -> None:
    won = np.concatenate([np.zeros(2000, np.bool_), np.ones(256, np.bool_)])
    report = lesson_report(shown(won), step=1)
    assert report.window < 500
    assert report.lower > 0.4


def test_looking_at_a_running_lesson_after_every_episode_misleads_seldom() -> None:
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(20):
        lesson = CurrentLesson(LESSON, CELLS, memory=MlAgentsMemory([CRITERIA]))
        looks = []
        for number, won in enumerate((generator.random(600) < 0.75).tolist()):
            lesson.show(Outcome(won, CELLS[number % 2]))
            if number % 10 == 9:
                looks += [lesson_report(lesson, step=None), *cell_reports(lesson)]
        missed += any(not look.lower <= 0.75 <= look.upper for look in looks)
    assert missed <= 3  # three intervals, each of which ever misses with 5 % at most


SCENARIO = 3


def batch(
    ended: list[int], running: list[int], *, scenario: int = SCENARIO, running_in: int = SCENARIO
) -> EpisodeBatch:
    return ended_batch(
        ["Warning|Result|Win"] * len(ended),
        order=ended,
        scenario=scenario,
        running=running,
        running_scenario=running_in,
    )


def marked(orders: list[int]) -> list[Outcome | None]:
    """Outcomes that tell which episode they are from."""
    return [Outcome(True, Cell("goto", order)) for order in orders]


@settings(max_examples=30)
@given(st.permutations(range(12)), st.data())
def test_every_order_of_ends_counts_the_same_sequence(ends: list[int], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, 12), max_size=4).map(sorted))
    order = StartOrder(SCENARIO)
    counted: list[int] = []
    running = set(ends)
    for first, last in zip([0, *cuts], [*cuts, 12], strict=True):
        running -= set(ends[first:last])
        released = order.add(batch(ends[first:last], sorted(running)), marked(ends[first:last]))
        counted += [outcome.cell.difficulty for outcome in released if outcome.cell]
        if first != last:
            assert counted == list(range(min(running, default=12)))
    assert counted == list(range(12))


def test_an_episode_waits_for_all_that_began_before_it() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([2, 3], [0, 1, 4]), marked([2, 3])) == []
    assert order.add(batch([0], [1, 4, 5]), marked([0])) == marked([0])
    assert order.add(batch([1], [4, 5, 6]), marked([1])) == marked([1, 2, 3])


def test_episodes_of_another_scenario_or_without_an_outcome_do_not_count_nor_keep_others() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([7], [9], scenario=2), marked([7])) == []
    assert order.waiting == []
    assert order.add(batch([7], [0, 1], running_in=2), marked([7])) == marked([7])
    assert order.add(batch([8, 9], [10]), [None, *marked([9])]) == marked([9])


def test_a_new_lesson_forgets_what_waited() -> None:
    order = StartOrder(SCENARIO)
    order.add(batch([5], [0]), marked([5]))
    order.begin(4)
    assert order.waiting == []


def test_changes_of_scenario_within_a_lesson_lose_nothing() -> None:
    order = StartOrder(SCENARIO)
    assert order.add(batch([1], [0, 3], running_in=SCENARIO), marked([1])) == []
    later = batch([3], [0, 4], scenario=SCENARIO + 1)
    mixed = later._replace(running_scenario=np.array([SCENARIO, SCENARIO + 1]))
    assert order.add(mixed, marked([3])) == []
    last = batch([0], [4, 5])._replace(running_scenario=np.array([SCENARIO + 1, SCENARIO + 2]))
    assert order.add(last, marked([0])) == marked([0, 1, 3])

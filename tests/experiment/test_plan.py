"""What a curriculum would do: mixes, forecasts and warnings."""

import json
from math import ceil, log
from pathlib import Path
from typing import Literal

import pytest
from broken_curriculum import GOOD

from aimbot_lab.curriculum.evidence import STAKES, EvidenceTest
from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import cell_shares, lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.plan import (
    CurriculumPlan,
    Forecaster,
    assumed_win_rates,
    halfway,
    plan_curriculum,
)
from aimbot_lab.foundation.named_code import always
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import spec_of

SHIPPED = sorted((Path(__file__).parents[2] / "curricula").glob("*.yaml"))


pytestmark = pytest.mark.usefixtures("here")


def planned(text: str, *overrides: str) -> CurriculumPlan:
    Path("c.yaml").write_text(text, encoding="utf-8")
    return plan_curriculum(load_curriculum("c.yaml", overrides))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_curriculum_is_not_doubtful_its_shares_sum_to_one_and_it_can_begin(
    path: Path,
) -> None:
    loaded = load_curriculum(path, may_run=always)
    assert plan_curriculum(loaded).warnings == ()
    config = loaded.config
    for lesson in config.lessons:
        shares = cell_shares(lesson_scenario(lesson, spec_of(config.env).difficulties))
        assert sum(shares.values()) == pytest.approx(1)
    Training(config.training_plan).close()


def test_a_share_is_that_of_the_target_times_that_of_the_difficulty() -> None:
    mix = "{goto: 3, attack: 1, free: 0}\n    difficulty: {goto: [1, 0, 3, 0, 0]}"
    text = GOOD.replace("{goto: 1.0}\n    difficulty: {goto: [1, 0, 0, 0, 0]}", mix, 1)
    cells = planned(text).lessons[0].cells
    assert [(cell.target, cell.difficulty, cell.share) for cell in cells] == [
        ("goto", 1, 0.75 * 0.25),
        ("goto", 3, 0.75 * 0.75),
        *(("attack", level, pytest.approx(0.05)) for level in (1, 2, 3, 4, 5)),
    ]


def test_a_plan_says_how_observations_and_rewards_are_scaled_and_why() -> None:
    default = " (the default of ppo in world arena)"
    for given, why in ((), default), (("train.reward_scale=0.01",), ""):
        wanted = f"observations by their declared bounds{default}, rewards times 0.01{why}"
        assert planned(GOOD, "train.algo=ppo", *given).scaling == wanted


# What is changed, and what is said.
DOUBTFUL = [
    ("lessons.0.completion_criteria.threshold=0.9999", "threshold 0.9999 can hardly be met"),
    ("train.total_steps=1000", "less than one rollout, env.num_envs * train.n_steps = 8,192"),
    ("train.total_steps=20000", "may not be enough: the lessons take some"),
    (
        "lessons.0.completion_criteria.scope=every_cell|lessons.0.difficulty.goto=[99, 1, 0, 0, 0]",
        "lessons.0 'first': goto 2 must pass by itself and gets 1.00 % of the episodes",
    ),
    (
        "lessons.0.completion_criteria.scope=every_cell"
        "|lessons.0.difficulty.goto=[1, 1e-300, 0, 0, 0]",
        "can hardly be met: at a true win rate of",
    ),
]


@pytest.mark.parametrize(("overrides", "said"), DOUBTFUL)
def test_what_is_doubtful_is_said(overrides: str, said: str) -> None:
    assert any(said in warning for warning in planned(GOOD, *overrides.split("|")).warnings)


def test_the_document_holds_plan_and_configuration() -> None:
    found = planned(GOOD, "seed=7")
    assert found.warnings == ()
    document = json.loads(json.dumps(found.as_json()))
    assert (document["schema"], document["resolved"]["seed"]) == (1, 7)
    assert document["longest_episode_steps"] == 300
    first, second = document["lessons"]
    assert first["cells"] == [{"target": "goto", "difficulty": 1, "share": 1.0}]
    assert first["expected"][-1] == {"win_rate": 1.0, "episodes": 100}
    assert (second["completion_criteria"], second["expected"]) == (None, [])


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


def test_no_lesson_is_shorter_than_its_least_length_and_what_takes_too_long_is_no_number() -> None:
    assert episodes(criteria(0.5, least=321), 1.0) == 321
    assert episodes(criteria(0.9995), 0.9996) is None
    for share in (0.0, 5e-324, 1e-11):  # of a cell that is next to never drawn
        assert episodes(criteria(0.7, scope="every_cell"), 1.0, 1.0, share) is None


def test_cells_that_must_each_pass_wait_for_the_rarest() -> None:
    pooled = episodes(criteria(0.7), 0.9)
    assert episodes(criteria(0.7, scope="every_cell"), 0.9, 0.9, 0.1) > 5 * pooled
    assert episodes(criteria(0.7, scope="every_cell"), 0.9, 1.0) == pooled


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

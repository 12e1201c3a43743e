"""A replay of the record ends every lesson where the run did, and tells what others would do."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, TWO_CELLS, Game, lesson, line

from aimbot_lab.cli.commands.explain import _texts
from aimbot_lab.curriculum.progress import CurriculumProgress, read_record
from aimbot_lab.curriculum.rule_replay import RecordedRun, attempts, replays
from aimbot_lab.curriculum.rules import RULES, CompletionCriteria, EvidenceRule, MlAgentsMemory
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson, WeightChange
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import LabError

ROWS, TOTAL = 8, 40_000
KINDS = {
    "pooled": {"threshold": 0.6},
    "every_cell": {"threshold": 0.6, "scope": "every_cell"},
    "reward": {"measure": "reward", "threshold": 0.2, "reward_range": (-2.0, 2.0)},
    "progress": {"measure": "progress", "threshold": 0.02},
    "ml-agents": {"rule": "ml-agents", "threshold": 0.65, "min_lesson_length": 40},
    "ml-agents reward": {"rule": "ml-agents", "measure": "reward", "threshold": 0.4},
    "ml-agents elo": {"rule": "ml-agents", "measure": "elo", "threshold": 1260.0},
}


def test_every_rule_is_among_the_kinds_that_are_replayed() -> None:
    assert {CompletionCriteria(**kind).rule for kind in KINDS.values()} == set(RULES)


def world(lessons: list[Lesson]) -> RecordedRun:
    return RecordedRun(tuple(lessons), DIFFICULTIES, ROWS, TOTAL)


def play(lessons: list[Lesson], seed: int, *, steps: int = 400, climb: bool = True) -> Game:
    """A game of an agent that learns, one batch a step, with a change of weights by hand."""
    settings = ForgettingSettings(on_forgetting="demote")
    game = Game(CurriculumProgress(lessons, DIFFICULTIES, total_steps=TOTAL, forgetting=settings))
    rng, rating = np.random.default_rng(seed), 1200.0
    for step in range(ROWS, ROWS * steps + 1, ROWS):
        rate = 0.3 + 0.6 * (step / (ROWS * steps) if climb else 1.0)
        lines = []
        for level in rng.integers(1, 4, rng.integers(0, 5)).tolist():
            won = rng.random() < rate - (0.1 if level == 3 else 0.0)
            lines.append(line(won, level, reward=won - rng.random()))
            rating += won - 0.5
        game.play(*lines, step=step, rating=rating)
        if step == 40 * ROWS:
            change = WeightChange("goto", ((3, 0.2),))
            game.progress.change_weights(change, lambda _: game.scenario)
        if game.progress.finished:
            break
        game.begin_next()
    return game


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_agrees_with_the_run(kind: str) -> None:
    lessons = [lesson(f"l{n}", difficulty=TWO_CELLS, criteria=KINDS[kind]) for n in range(3)]
    passed = 0
    for seed in range(3):
        game = play(lessons, seed, steps=900)
        found = list(replays(game.record, world(lessons)))
        assert [one.attempt.lesson for one in found] == list(range(len(found)))
        for one in found:
            assert one.own is not None
            assert one.own.agrees
            if one.attempt.end is not None:
                passed += 1
                check = one.own.passed
                assert check is not None
                assert check.statistic == one.attempt.end["statistic"]
        assert len(found) == game.progress.lesson + 1
    assert passed


@pytest.mark.parametrize("rule", ["evidence", "ml-agents"])
def test_a_run_that_looks_only_where_episodes_end_left_no_gap(rule: str) -> None:
    """As a training does: between these steps and the ends of rollouts nothing is decided."""
    asked = {"rule": rule, "measure": "progress"}
    for seed in (0, 5):
        mix = {"difficulty": TWO_CELLS, "criteria": {**asked, "threshold": 0.011 * (seed + 1)}}
        lessons = [lesson("a", **mix), lesson("b", **mix)]
        game = Game(CurriculumProgress(lessons, DIFFICULTIES, total_steps=TOTAL))
        rng = np.random.default_rng(seed)
        for step in range(ROWS, TOTAL, ROWS):
            ends_rollout = step % (40 * ROWS) == 0
            lines = [line(bool(rng.random() < 0.8))] * int(rng.random() < 0.1)
            if lines or ends_rollout:
                game.play(*lines, step=step)
            if game.progress.finished:
                break
            if ends_rollout:
                game.begin_next()
        found = list(replays(game.record, world(lessons)))
        assert len(found) == 2
        for one in found:
            assert one.own is not None
            assert one.own.agrees


def test_a_record_with_a_gap_is_found_out() -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS), lesson("b")]
    game = play(lessons, 1, climb=False)
    name = "episodes.csv"
    kept = game.kept[name].splitlines(keepends=True)
    game.kept[name] = b"".join(kept[:1] + kept[9:])
    first = next(replays(game.record, world(lessons)))
    assert first.own is not None
    assert not first.own.agrees


@pytest.mark.parametrize("threshold", [0.3, 0.85])
def test_a_what_if_is_a_fresh_run_of_the_rule_on_the_same_episodes(threshold: float) -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria={"threshold": 0.6}), lesson("b")]
    game = play(lessons, 7)
    first, *_ = replays(game.record, world(lessons), threshold=threshold)
    criteria = CompletionCriteria(threshold=threshold, min_lesson_length=10)
    rule = EvidenceRule(criteria, [Cell("goto", 1), Cell("goto", 2)], MlAgentsMemory([]))
    passed_after = None
    for number, episode in enumerate(first.attempt.episodes, start=1):
        rule.count(episode.outcome)
        if rule.passed:
            passed_after = number
            break
    assert first.other is not None
    found = first.other.passed
    assert (found.episodes if found else None) == passed_after
    assert (passed_after is None) == (threshold == 0.85)


def test_lessons_that_do_not_take_the_other_threshold_say_so_and_the_rest_goes_on() -> None:
    lessons = [
        lesson("a", difficulty=TWO_CELLS, criteria=KINDS["ml-agents reward"]),
        lesson("b", difficulty=TWO_CELLS),
    ]
    game = play(lessons, 2)
    by_reward, by_wins = replays(game.record, world(lessons), threshold=-3.0)
    assert by_reward.other is not None
    assert by_reward.refused == ""
    assert by_wins.other is None
    assert by_wins.refused == "threshold must be greater than 0.0 (got -3.0)"
    assert by_wins.own is not None
    assert by_wins.own.agrees


def test_a_share_of_the_steps_must_exceed_its_threshold_and_evidence_reach_its_bound() -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria=KINDS["progress"])]
    (one,) = replays(play(lessons, 2, steps=101).record, world(lessons))
    assert one.own is not None
    before, at_end = one.own.checks[-2:]
    assert (before.statistic, before.bound) == (0.02, 0.02)
    assert [one.own.reached(check) for check in (before, at_end)] == [False, True]
    by_evidence = replace(one.own, criteria=CompletionCriteria(threshold=0.5))
    assert by_evidence.reached(before)


def test_a_lesson_that_is_gone_back_to_is_an_attempt_of_its_own() -> None:
    lessons = [
        lesson("a", difficulty=TWO_CELLS, criteria={"threshold": 0.8, "scope": "every_cell"}),
        lesson("b", difficulty=TWO_CELLS),
    ]
    settings = ForgettingSettings(on_forgetting="demote")
    game = Game(CurriculumProgress(lessons, DIFFICULTIES, forgetting=settings))
    for won, following in ((True, 1), (False, 0), (True, 1)):
        while game.progress.lesson != following:
            game.play(line(won, 1), line(won, 2))
            game.begin_next()
    found = attempts(game.record)
    assert [one.lesson for one in found] == [0, 1, 0, 1]
    assert [one.end["decision"] for one in found if one.end] == ["promote", "demote", "promote"]
    ended = list(replays(game.record, world(lessons)))
    assert all(one.own is not None and one.own.agrees for one in ended)


def test_what_a_crash_tore_off_is_passed_over_and_what_is_no_record_refused() -> None:
    game = play([lesson("a", difficulty=TWO_CELLS)], 3, steps=30)
    episodes = game.kept["episodes.csv"].decode()
    assert len(read_record(episodes + "240,1,go", "").episodes) == len(game.record.episodes)
    with pytest.raises(LabError, match=r"episodes\.csv:1: the run's record is damaged"):
        read_record("something,else\n", "")


def test_the_record_of_a_run_that_goes_on_is_that_of_one_never_stopped() -> None:
    lessons = [lesson("a", criteria={"threshold": 0.6}), lesson("b")]
    lines = [line(bool(won)) for won in np.random.default_rng(5).random(300) < 0.75]
    whole = Game(CurriculumProgress(lessons, DIFFICULTIES))
    broken = Game(CurriculumProgress(lessons, DIFFICULTIES))
    for step, text in enumerate(lines):
        whole.play(text, step=step)
        whole.begin_next()
    state, rank, scenario = None, 0, 1
    for step, text in enumerate(lines[:200]):
        broken.play(text, step=step)
        broken.begin_next()
        if step == 120:
            state = json.dumps(broken.progress.state())
            rank, scenario = broken.rank, broken.scenario
    assert state is not None
    broken.progress = CurriculumProgress(lessons, DIFFICULTIES)
    broken.progress.resume(json.loads(state))
    broken.rank, broken.scenario = rank, scenario
    for step, text in enumerate(lines[121:], start=121):
        broken.play(text, step=step)
        broken.begin_next()
    assert broken.kept == whole.kept
    assert broken.progress.state() == whole.progress.state()


@pytest.mark.parametrize(
    ("criteria", "smoothed"),
    [
        (KINDS["ml-agents"], True),
        ({**KINDS["ml-agents"], "signal_smoothing": False}, False),
        (KINDS["pooled"], False),
    ],
)
def test_explain_says_where_the_value_is_smoothed_and_blames_no_cell_that_wins_enough(
    criteria: dict[str, Any], smoothed: bool
) -> None:
    lessons = [lesson(f"l{n}", difficulty=TWO_CELLS, criteria=criteria) for n in range(2)]
    game = play(lessons, 1, steps=150)
    where = world(lessons)
    found = Explanation("3f2a", "a run", where, tuple(replays(game.record, where)))
    text = "\n".join(_texts(found, every=True))
    assert ("smoothed (with a quarter of the value before)" in text) == smoothed
    for one in found.replayed:
        if one.attempt.end is not None:
            assert f"after {len(one.attempt.episodes):,} episodes" in text
    threshold = lessons[0].completion_criteria.threshold
    for rate in re.findall(r"held back by .*: win rate ([\d.]+)", text):
        assert float(rate) <= 100 * threshold

"""A replay of the record ends every lesson where the run did, and tells what others would do."""

import json
import random
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.cli.commands.explain import _document, _texts
from aimbot_lab.curriculum.progress import (
    EPISODES_NAME,
    EVENTS_NAME,
    CurriculumProgress,
    read_record,
)
from aimbot_lab.curriculum.rule_replay import RecordedRun, attempts, replays
from aimbot_lab.curriculum.rules import RULES, CompletionCriteria, EvidenceRule, MlAgentsMemory
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson, WeightChange
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import LabError
from tests.episode_batches import ended_batch

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
        assert [one.attempt.lesson for one in found] == [*range(game.progress.lesson + 1)]
        for one in found:
            assert one.own.agrees
            if one.attempt.end is not None:
                passed += 1
                assert one.own.passed.statistic == one.attempt.end["statistic"]
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
        assert [one.own.agrees for one in found] == [True, True]


def test_a_record_with_a_gap_is_found_out() -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS), lesson("b")]
    game = play(lessons, 1, climb=False)
    kept = game.kept["episodes.csv"].splitlines(keepends=True)
    game.kept["episodes.csv"] = b"".join(kept[:1] + kept[9:])
    assert not next(replays(game.record, world(lessons))).own.agrees


@pytest.mark.parametrize("threshold", [0.3, 0.85])
def test_a_what_if_is_a_fresh_run_of_the_rule_on_the_same_episodes(threshold: float) -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria={"threshold": 0.6}), lesson("b")]
    first, *_ = replays(play(lessons, 7).record, world(lessons), threshold=threshold)
    criteria = CompletionCriteria(threshold=threshold, min_lesson_length=10)
    rule = EvidenceRule(criteria, [Cell("goto", 1), Cell("goto", 2)], MlAgentsMemory([]))
    passed_after = None
    for number, episode in enumerate(first.attempt.episodes, start=1):
        rule.count(episode.outcome)
        if rule.passed:
            passed_after = number
            break
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
    refused = "threshold must be greater than 0.0 (got -3.0)"
    assert (by_wins.other, by_wins.refused, by_wins.own.agrees) == (None, refused, True)


def test_a_share_of_the_steps_must_exceed_its_threshold_and_evidence_reach_its_bound() -> None:
    lessons = [lesson("a", difficulty=TWO_CELLS, criteria=KINDS["progress"])]
    (one,) = replays(play(lessons, 2, steps=101).record, world(lessons))
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
    assert all(one.own.agrees for one in replays(game.record, world(lessons)))


def test_what_a_crash_tore_off_is_passed_over_and_what_is_no_record_refused() -> None:
    game = play([lesson("a", difficulty=TWO_CELLS)], 3, steps=30)
    episodes = game.kept["episodes.csv"].decode()
    assert len(read_record(episodes + "240,1,go", "").episodes) == len(game.record.episodes)
    with pytest.raises(LabError, match=r"episodes\.csv:1: the run's record is damaged"):
        read_record("something,else\n", "")


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


AT = {"step": 800, "lesson": 1, "episodes": 20}
LOST = {
    **{"kind": "lost", "target": "goto", "difficulty": 1, "lesson": 0, "floor": 0.5},
    **{"episodes": 9, "window": 9, "win_rate": 0.1, "lower": 0.0, "upper": 0.4},
    **{"log_evidence": 3.0, "log_bound": 2.9, "action": "rehearse"},
}
EVENTS = [
    {"kind": "greedy", **AT, "played": 500, "won": 10, "passed": False},
    {"kind": "regression", **AT, "regression": LOST},
    {
        **{"kind": "targets", **AT, "targets": ["goto", "attack"]},
        **{"weights": [0.5, 0.5], "locked": [False, False]},
    },
]
SPLINTERS = [
    *(b"nan", b"1e999", b"-1e308", b",", b"\n", b"-1", b"9" * 20, b"9" * 5000, b"\0", b"\xff"),
    *(b"{", b'"', b"\x1b]0;x\x07", b"\xc2\x85", b"null", b"[" * 300, b"goto", b"back", b"true"),
]


def damaged(content: bytes, source: random.Random) -> bytes:
    """`content` with one to three changes."""
    changed = bytearray(content)
    for _ in range(source.choice([1, 1, 3])):
        at = source.randrange(len(changed) + 1)
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(changed)))
        match source.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << source.randrange(8)
            case 1:
                del changed[at : at + source.randint(1, 80)]
            case 2:
                changed[at:at] = source.choice(SPLINTERS)
            case 3 if numbers:
                number = source.choice(numbers)
                changed[number.start() : number.end()] = source.choice(SPLINTERS)
            case 4:
                del changed[at:]
    return bytes(changed)


@cache
def records() -> list[tuple[RecordedRun, dict[str, bytes]]]:
    both, found = {"goto": 1, "attack": 1}, []
    for criteria in KINDS.values():
        lessons = [
            lesson(f"l{n}", difficulty=TWO_CELLS, criteria=criteria, targets=both) for n in range(2)
        ]
        kept = {EVENTS_NAME: b"", **play(lessons, 1, steps=60).kept}
        kept[EVENTS_NAME] += "".join(f"{json.dumps(one)}\n" for one in EVENTS).encode()
        found.append((world(lessons), kept))
    return found


def explained(where: RecordedRun, kept: dict[str, bytes]) -> str:
    texts = (kept[name].decode("utf-8", "replace") for name in (EPISODES_NAME, EVENTS_NAME))
    with np.errstate(all="ignore"):
        found = Explanation("3f2a", "a run", where, tuple(replays(read_record(*texts), where)))
    json.dumps(_document(found, every=True))
    return "\n".join(_texts(found, every=True))


@pytest.mark.parametrize("name", [EPISODES_NAME, EVENTS_NAME])
def test_a_record_explains_itself_and_a_damaged_one_is_explained_or_refused_in_a_line(
    name: str,
) -> None:
    source, refusals = random.Random(name), list[str]()
    for where, kept in records():
        text = explained(where, kept)
        assert "weights of the targets moved to goto 0.5 attack 0.5" in text
        for _ in range(25):
            try:
                explained(where, {**kept, name: damaged(kept[name], source)})
            except LabError as error:
                refusals.append(str(error))
    assert refusals
    assert all(refusal.isprintable() for refusal in refusals)


@pytest.mark.parametrize("stop", [0, 10, 77, 120])
def test_a_stored_curriculum_and_its_record_go_on_as_if_never_stopped(stop: int) -> None:
    mix = lesson("b", difficulty=TWO_CELLS, criteria={"threshold": 0.7, "scope": "every_cell"})
    lessons = [lesson("a", difficulty=EASY), mix]
    won = np.random.default_rng(8).random(150) < 0.8
    lines = [line(bool(one), 1 + number % 2) for number, one in enumerate(won)]

    def feed(game: Game, *, first: int, last: int = 150) -> None:
        for number in range(first, last):
            game.play(lines[number] if number % 9 else "nonsense", step=number)
            game.begin_next()

    whole, broken = (Game(CurriculumProgress(lessons, DIFFICULTIES)) for _ in range(2))
    feed(whole, first=0)
    feed(broken, first=0, last=stop)
    state, rank, scenario = broken.progress.state(), broken.rank, broken.scenario
    stored = json.dumps(state)
    feed(broken, first=stop, last=stop + 30)  # which is lost
    broken.progress = CurriculumProgress(lessons, DIFFICULTIES)
    broken.progress.resume(json.loads(stored))
    assert json.dumps(broken.progress.state()) == stored
    broken.rank, broken.scenario = rank, scenario
    feed(broken, first=stop)
    assert broken.kept == whole.kept
    assert broken.progress.state() == whole.progress.state()
    assert broken.progress.lesson_reports == whole.progress.lesson_reports
    assert whole.progress.lesson == 1


def test_waiting_episodes_are_stored() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    progress.begin_scenario(1)
    ended = ended_batch([line(True)], order=[1], running=[0, 2])
    assert progress.add(ended, step=1) is None
    after = CurriculumProgress([lesson("a")], DIFFICULTIES)
    after.resume(json.loads(json.dumps(progress.state())))
    assert after.state() == progress.state()
    assert after.state()["waiting"] == [[1, 1, ["goto", 1], None, 1]]

"""A curriculum that is stored and taken up again, and records that are damaged."""

import json
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line
from test_rule_replay import KINDS, play, world

from aimbot_lab.cli.commands.explain import _document, _texts
from aimbot_lab.curriculum.progress import (
    EPISODES_NAME,
    EVENTS_NAME,
    CurriculumProgress,
    read_record,
)
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.errors import LabError
from tests.episode_batches import ended_batch

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


def records() -> Iterator[tuple[RecordedRun, dict[str, bytes]]]:
    both = {"goto": 1, "attack": 1}
    for criteria in KINDS.values():
        lessons = [
            lesson(f"l{n}", difficulty=TWO_CELLS, criteria=criteria, targets=both) for n in range(2)
        ]
        game = play(lessons, 1, steps=60)
        game.kept.setdefault(EVENTS_NAME, b"")
        game.kept[EVENTS_NAME] += "".join(f"{json.dumps(one)}\n" for one in EVENTS).encode()
        yield world(lessons), game.kept


def explained(where: RecordedRun, kept: dict[str, bytes]) -> str:
    texts = (kept[name].decode("utf-8", "replace") for name in (EPISODES_NAME, EVENTS_NAME))
    with np.errstate(all="ignore"):
        found = Explanation("3f2a", "a run", where, tuple(replays(read_record(*texts), where)))
    json.dumps(_document(found, every=True))
    return "\n".join(_texts(found, every=True))


def test_every_record_explains_itself() -> None:
    for where, kept in records():
        text = explained(where, kept)
        assert "weights of the targets moved to goto 0.5 attack 0.5" in text


@pytest.mark.parametrize("name", [EPISODES_NAME, EVENTS_NAME])
def test_a_damaged_record_is_explained_or_refused_in_a_line(name: str) -> None:
    source, refusals = random.Random(name), list[str]()
    for where, kept in records():
        for _ in range(25):
            try:
                explained(where, {**kept, name: damaged(kept[name], source)})
            except LabError as error:
                refusals.append(str(error))
    assert refusals
    assert all(refusal.isprintable() for refusal in refusals)


@pytest.mark.parametrize("stop", [0, 10, 77])
def test_a_stored_curriculum_goes_on_as_if_never_stopped(stop: int) -> None:
    mix = lesson("b", difficulty=TWO_CELLS, criteria={"threshold": 0.7, "scope": "every_cell"})
    lessons = [lesson("a", difficulty=EASY), mix]
    generator = np.random.default_rng(8)
    lines = [
        line(bool(won), d) for won, d in zip(generator.random(150) < 0.8, [1, 2] * 75, strict=True)
    ]

    def feed(progress: CurriculumProgress, *, first: int, last: int) -> None:
        for number in range(first, last):
            game = Game.__new__(Game)
            game.progress, game.rank, game.kept = progress, number, {}
            game.scenario = progress.lesson + 1
            check = game.play(lines[number] if number % 9 else "nonsense", step=number)
            if check and check.decision == "promote":
                progress.begin_scenario(progress.lesson + 1)

    whole = CurriculumProgress(lessons, DIFFICULTIES)
    whole.begin_scenario(1)
    feed(whole, first=0, last=150)
    before = CurriculumProgress(lessons, DIFFICULTIES)
    before.begin_scenario(1)
    feed(before, first=0, last=stop)
    after = CurriculumProgress(lessons, DIFFICULTIES)
    after.resume(json.loads(json.dumps(before.state())))
    assert after.state() == before.state()
    feed(after, first=stop, last=150)
    assert after.state() == whole.state()
    assert after.lesson_reports == whole.lesson_reports
    assert whole.lesson == 1


def test_waiting_episodes_are_stored() -> None:
    progress = CurriculumProgress([lesson("a")], DIFFICULTIES)
    progress.begin_scenario(1)
    ended = ended_batch([line(True)], order=[1], running=[0, 2])
    assert progress.add(ended, step=1) is None
    after = CurriculumProgress([lesson("a")], DIFFICULTIES)
    after.resume(json.loads(json.dumps(progress.state())))
    assert after.state() == progress.state()
    assert after.state()["waiting"] == [[1, 1, ["goto", 1], None, 1]]

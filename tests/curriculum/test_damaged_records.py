"""A damaged record of a run is explained or refused in one line, whatever has become of it."""

import json
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from curriculum_game import TWO_CELLS, lesson
from test_rule_replay import KINDS, play, world

from aimbot_lab.cli.commands.explain import _document, _texts
from aimbot_lab.curriculum.records import EPISODES_NAME, EVENTS_NAME, read_record
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.foundation.errors import LabError

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
        for _ in range(40):
            try:
                explained(where, {**kept, name: damaged(kept[name], source)})
            except LabError as error:
                refusals.append(str(error))
    assert refusals
    assert all(refusal.isprintable() for refusal in refusals)

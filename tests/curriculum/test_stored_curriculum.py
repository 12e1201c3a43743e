"""A curriculum that is stored and taken up again goes on as if nothing had happened."""

import json

import numpy as np
import pytest
from curriculum_game import DIFFICULTIES, EASY, TWO_CELLS, Game, lesson, line

from aimbot_lab.curriculum.progress import CurriculumProgress
from tests.episode_batches import ended_batch


@pytest.mark.parametrize("stop", [0, 5, 10, 77, 150])
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

"""The curve of win rates: every episode once, and nothing that is not a rate."""

import numpy as np

from aimbot_lab.curriculum.episodes import Outcome
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.training.callbacks.report_callback import WinTally

EASY, HARD = Cell("goto", 1), Cell("goto", 3)


def outcomes(cell: Cell | None, wins: int, losses: int) -> list[Outcome]:
    return [Outcome(won, cell) for won in [True] * wins + [False] * losses]


def test_fewer_than_thirty_episodes_wait_for_more() -> None:
    tally = WinTally()
    tally.add(outcomes(EASY, 29, 0))
    assert tally.take() == {}
    tally.add(outcomes(EASY, 0, 29))
    found = tally.take()
    assert found["learning/win_rate"] == found["learning/win_rate/goto/1"] == 0.5
    assert found["learning/win_rate_lower"] < 0.5 < found["learning/win_rate_upper"]
    assert tally.take() == {}


def test_a_seldom_cell_has_its_point_when_it_has_episodes_enough() -> None:
    tally = WinTally()
    points = []
    for _ in range(6):
        tally.add([*outcomes(EASY, 40, 0), *outcomes(HARD, 0, 10), *outcomes(None, 0, 1)])
        points.append(tally.take())
    assert [("learning/win_rate/goto/3" in point) for point in points] == [False, False, True] * 2
    assert all(point["learning/win_rate"] == 40 / 51 for point in points)


def test_every_episode_is_in_one_point_also_over_a_stop() -> None:
    generator = np.random.default_rng(3)
    tally, wins, shown = WinTally(), 0, 0.0
    for size in generator.integers(0, 60, 50):
        won = generator.random(size) < 0.6
        wins += int(won.sum())
        tally.add(Outcome(bool(one), None) for one in won)
        kept = WinTally()
        kept.resume(tally.state())
        tally = kept
        counted = {row[0]: row[2] for row in tally.state()}.get("", 0)
        shown += tally.take().get("learning/win_rate", 0.0) * counted
    left = {row[0]: row[3] for row in tally.state()}.get("", 0)
    assert round(shown) + left == wins

"""What being watched costs: the same training twice, in changing order, and the interval."""

import math
from itertools import pairwise
from pathlib import Path

import pytest

from aimbot_lab.bench.panel import watching
from aimbot_lab.bench.panel.watcher import RENEW_SECONDS, REQUEST, Watcher
from aimbot_lab.bench.panel.watching import Pair, Taken, measure_watch_cost, watch_cost
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.runs import live_run
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder


def pair(alone: float, watched: float) -> Pair:
    return Pair(Taken(alone, 2 * alone, "same"), Taken(watched, 2 * watched, "same"))


def test_the_cost_is_the_mean_ratio_of_the_pairs_with_its_interval() -> None:
    found = watch_cost([pair(1.0, 1.1), pair(4.0, 4.4), pair(2.0, 2.2)])
    assert found.pairs == 3
    assert (found.seconds_alone, found.seconds_watched) == (2.0, 2.2)
    for ratio in (found.processor, found.clock):
        assert ratio == (pytest.approx(0.1), pytest.approx(0.1), pytest.approx(0.1))


def test_the_interval_is_students_of_the_logarithms() -> None:
    found = watch_cost([pair(1.0, 1.0), pair(1.0, math.exp(0.02))]).processor
    assert math.log1p(found.difference) == pytest.approx(0.01)
    # t of one degree of freedom at 97.5 % is 12.706; the logs' standard error is 0.01.
    assert math.log1p(found.upper) == pytest.approx(0.01 + 0.12706, abs=1e-5)
    assert math.isnan(watch_cost([pair(1.0, 1.0)]).processor.lower)


def test_the_order_changes_from_pair_to_pair_and_the_first_pair_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[bool] = []

    def taken(plan: object, watched: bool) -> Taken:
        order.append(watched)
        return Taken(2.0 if watched else 1.0, 1.0, "same")

    monkeypatch.setattr(watching, "_taken", taken)
    found = [*measure_watch_cost(4)]
    assert [one.watched.processor / one.alone.processor for one in found] == [2.0] * 4
    firsts = order[::2][1:]
    assert all(one is not other for one, other in pairwise(firsts))
    assert len(order) == 10


def test_a_training_that_learns_otherwise_when_watched_is_no_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_taken", lambda plan, watched: Taken(1.0, 1.0, str(watched)))
    with pytest.raises(LabError, match="learned something else"):
        next(measure_watch_cost(1))


def test_a_training_is_watched_by_another_process_and_by_nobody() -> None:
    (found,) = measure_watch_cost(1, rollouts=2, num_envs=16)
    assert found.alone.state_sha256 == found.watched.state_sha256
    assert min(found.alone[:2] + found.watched[:2]) > 0


def test_the_bench_asks_for_what_the_panel_asks_for(tmp_path: Path) -> None:
    assert REQUEST["seconds"] == live_run.WATCH_SECONDS
    assert RENEW_SECONDS == live_run.RENEW_SECONDS
    watcher, run = Watcher(tmp_path), ControlChannel(tmp_path)
    ((key, asked),) = run.requests()
    assert asked == REQUEST
    run.answer(key, {"watched_for": 15})
    live = LiveFolder.of(tmp_path)
    assert watcher.look() == b""
    live.path.mkdir()
    live.status.write_text("{}")
    assert watcher.look() == b"{}"
    assert list((tmp_path / "mail").iterdir()) == []

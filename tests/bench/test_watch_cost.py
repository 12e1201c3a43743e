"""What being watched costs: stretches of one training, watched and alone, and the interval."""

import math
import time
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.bench.panel.turns import Meter, MeteredRequests, Stretch, Turns
from aimbot_lab.bench.panel.watcher import RENEW_SECONDS, REQUEST, Watcher
from aimbot_lab.bench.panel.watching import Pair, measure_watch_cost, watch_cost
from aimbot_lab.panel.server.runs import live_run
from aimbot_lab.tracking.runs.control_channel import ControlChannel
from aimbot_lab.tracking.runs.live_folder import LiveFolder


def pair(alone: float, watched: float) -> Pair:
    taken = (False, alone, 2 * alone, 0.0), (True, watched, 2 * watched, 0.01 * watched)
    return Pair(*(Stretch(*one) for one in taken))


def test_the_cost_is_the_mean_ratio_of_the_pairs_with_its_interval() -> None:
    found = watch_cost([pair(1.0, 1.1), pair(4.0, 4.4), pair(2.0, 2.2)])
    assert found.pairs == 3
    assert (found.seconds_alone, found.seconds_watched) == (2.0, 2.2)
    assert found.own == pytest.approx(0.01)
    for ratio in (found.processor, found.clock):
        assert tuple(ratio) == pytest.approx((0.1, 0.1, 0.1))


def test_the_interval_is_students_of_the_logarithms() -> None:
    found = watch_cost([pair(1.0, 1.0), pair(1.0, math.exp(0.02))]).processor
    assert math.log1p(found.difference) == pytest.approx(0.01)
    # t of one degree of freedom at 97.5 % is 12.706; the logs' standard error is 0.01.
    assert math.log1p(found.upper) == pytest.approx(0.01 + 0.12706, abs=1e-5)
    assert math.isnan(watch_cost([pair(1.0, 1.0)]).processor.lower)


class Publication:
    """Takes half a second to publish, by a clock of its own, while somebody watches."""

    def __init__(self, clock: "Clock") -> None:
        self._clock, self._watched = clock, False

    def watch(self, document: Any) -> dict[str, Any]:
        self._watched = True
        return {"watched_for": document["seconds"]}

    def publish(self, progress: Any, *, step: int, policy: Any) -> None:
        self._clock.now += 0.5 * self._watched

    def show_agent(self, policy: Any, about: Any) -> dict[str, Any]:
        return dict(about)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_stretches_alternate_and_hold_whole_rollouts_with_what_showing_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, told, ended = Clock(), list[bool](), list[Stretch]()
    monkeypatch.setattr(time, "process_time", clock)
    monkeypatch.setattr(time, "perf_counter", clock)
    meter = Meter()
    turns = Turns(
        lambda: Publication(clock), turn=told.append, ended=ended.append, meter=meter, seconds=4.0
    )
    progress: Any = None
    for rollout in range(50):
        turns.watch({"seconds": 15})  # of which none has an effect at rest
        turns.publish(progress, step=1_000_000 * rollout, policy=None)
        clock.now += 1.0
    assert told[:8] == [False, True, True, False, False, True, True, False]
    assert [one.watched for one in ended] == told[: len(ended)]
    for one in ended:
        assert (one.own > 0.3) if one.watched else (one.own == 0.0)
        assert one.processor == one.clock == pytest.approx(1.0 + one.own)


def test_looks_and_answers_are_metered(tmp_path: Path) -> None:
    calls: list[str] = []

    class Counting(Meter):
        def __call__(self, call: Any) -> Any:
            calls.append("call")
            return super().__call__(call)

    requests = MeteredRequests(ControlChannel(tmp_path), Counting())
    key = ControlChannel(tmp_path).send(REQUEST)
    assert [asked for _, asked in requests.requests()] == [REQUEST]
    requests.answer(key, {"watched_for": 15})
    assert len(calls) == 2
    assert requests.requests() == []


def test_a_training_is_watched_by_another_process_by_turns() -> None:
    ended: list[Pair] = []
    found = measure_watch_cost(2, ended=ended.append, seconds=0.4, num_envs=16)
    assert ended == found
    assert [(one.alone.watched, one.watched.watched) for one in found] == [(False, True)] * 2
    assert all(min(one.alone[1:3] + one.watched[1:3]) > 0 for one in found)
    assert 0 < watch_cost(found).own < 1


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

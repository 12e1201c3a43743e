"""What being watched costs: stretches of one training, watched and alone, and the interval."""

import math
from pathlib import Path

import pytest

from aimbot_lab.bench.costs import OWN, RENEW_SECONDS, REQUEST, Watcher, bench_panel, watch_cost
from aimbot_lab.panel.server import run_list as live_run
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder


def stretches(*seconds: float) -> list[dict[str, float]]:
    return [{"processor": one, "seconds": 2 * one, OWN: 0.01 * one} for one in seconds]


def test_the_cost_is_the_mean_ratio_of_the_pairs_with_its_interval() -> None:
    found = watch_cost(stretches(1.0, 4.0, 2.0), stretches(1.1, 4.4, 2.2))
    assert found["pairs"] == 3
    assert (found["seconds_alone"], found["seconds_watched"]) == (2.0, 2.2)
    assert found["own"] == pytest.approx(0.01)
    for ratio in (found["processor"], found["clock"]):
        assert tuple(ratio.values()) == pytest.approx((0.1, 0.1, 0.1))


def test_the_interval_is_students_of_the_logarithms() -> None:
    found = watch_cost(stretches(1.0, 1.0), stretches(1.0, math.exp(0.02)))["processor"]
    assert math.log1p(found["difference"]) == pytest.approx(0.01)
    # t of one degree of freedom at 97.5 % is 12.706; the logs' standard error is 0.01.
    assert math.log1p(found["upper"]) == pytest.approx(0.01 + 0.12706, abs=1e-5)
    assert math.isnan(watch_cost(stretches(1.0), stretches(1.0))["processor"]["lower"])


def test_a_training_is_watched_by_another_process_by_turns() -> None:
    said: list[str] = []
    found = bench_panel(2, said.append, seconds=0.4, num_envs=16).document
    assert said == ["repeat 1 of 2: 2 stretches", "repeat 2 of 2: 2 stretches"]
    assert found["pairs"] == 2
    assert found["seconds_alone"] > 0
    assert 0 < found["own"] < 1


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

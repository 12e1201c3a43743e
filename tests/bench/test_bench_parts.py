"""Parts of benchmarks: worlds in full play, and what replays, bridges and watching cost."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.bridge import started
from aimbot_lab.bench.costs import (
    OWN,
    RENEW_SECONDS,
    REQUEST,
    WARM_UP,
    Watcher,
    replay_cost,
    watch_cost,
)
from aimbot_lab.bench.sim import Play
from aimbot_lab.cli.bench import bench
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.panel.server import run_list as live_run
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.worlds.registry import default_type, settings_with
from tests.worlds.stranger import WALK, WalkSettings


def test_rows_in_full_play_end_at_all_times() -> None:
    target = default_type().default_target()
    play = Play(settings_with(num_envs=64), Scenario({target: 1.0}))
    assert play.world.spec.max_steps == 300
    ended = [play.run(1) for _ in range(300)]
    assert sum(ended) >= 64
    assert max(ended) <= 8


def test_a_world_that_says_nothing_of_benchmarks_is_played_from_first_episodes_on() -> None:
    world, scenario = WALK.make(WalkSettings(num_envs=4)), Scenario({"right": 1.0})
    WALK.spread_episodes(world, scenario, seed=1, play=lambda steps: steps)
    assert world.scenario_number == 1
    buffers = new_step_buffers(4, len(world.spec.observation_names))
    assert WALK.step_parts(world, scenario, buffers) == {}
    assert WALK.hardest_target() == WALK.default_target() == "right"


def test_the_cost_is_that_of_the_rollouts_that_keep_replays() -> None:
    found = replay_cost([1.0, 1.1] * 10, 0.011)
    assert (found["seconds_without"], found["seconds_with"]) == (1.0, 1.1)
    figures = [found[key] for key in ("difference", "lower", "upper")]
    assert [round(figure, 6) for figure in figures] == [0.1] * 3
    assert round(found["share"], 6) == 0.01
    assert WARM_UP % 2 == 0  # else the kinds would be swapped


def test_every_part_is_measured_and_the_share_is_theirs() -> None:
    done = CliRunner().invoke(bench, ["bridge", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (wire,) = found["wire"]
    assert wire["agents"] == 4
    assert wire["steps_per_second"] == pytest.approx(4 * wire["messages_per_second"])
    assert wire["echo_per_second"] > 0
    assert wire["message_bytes"] > wire["answer_bytes"] > 0
    inside = found["in_process"]
    assert inside["share"] == pytest.approx(inside["environment"] / inside["world"])


def test_a_build_that_ends_by_itself_is_reported() -> None:
    with (
        pytest.raises(UnityEnvironmentException, match="ended with exit code 3"),
        started("-c", "import sys; sys.exit(3)") as one,
    ):
        one.receive_bytes()


def stretches(*seconds: float) -> list[dict[str, float]]:
    return [{"processor": one, "seconds": 2 * one, OWN: 0.01 * one} for one in seconds]


def test_the_cost_is_the_mean_ratio_of_the_pairs_with_its_interval() -> None:
    found = watch_cost(stretches(1.0, 4.0, 2.0), stretches(1.1, 4.4, 2.2))
    assert found["pairs"] == 3
    assert (found["seconds_alone"], found["seconds_watched"]) == (2.0, 2.2)
    assert found["own"] == pytest.approx(0.01)
    for ratio in (found["processor"], found["clock"]):
        assert tuple(ratio.values()) == pytest.approx((0.1, 0.1, 0.1))


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

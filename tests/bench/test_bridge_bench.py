"""`aimbot-lab bench bridge`: what its output holds; its figures are not for a test."""

import json

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.bridge.bridge import FULL
from aimbot_lab.bench.bridge.peers import EchoPeer, Peer
from aimbot_lab.bench.timing.turns import best_by_turns
from aimbot_lab.cli.bench.command import bench
from aimbot_lab.foundation.errors import LabError


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


def test_the_full_bench_measures_what_the_page_quotes() -> None:
    assert FULL.agents == (64, 256)
    assert FULL.in_process_agents == 1024


def test_runs_take_turns() -> None:
    called: list[str] = []
    best = best_by_turns([lambda: called.append("a"), lambda: called.append("b")], 3)
    assert "".join(called) == "ababab"
    assert all(seconds < float("inf") for seconds in best)


def test_an_echo_takes_its_turns_and_ends_when_told() -> None:
    with EchoPeer(5, 3) as echo:
        assert echo.steps_per_second(0.0) > 0


def test_a_build_that_ends_by_itself_is_told() -> None:
    with (
        pytest.raises(LabError, match="the build ended before it was told to"),
        Peer(("this",)) as one,
    ):
        one._received()

"""`aimbot-lab bench bridge`: what its output holds; its figures are not for a test."""

import json

import pytest
from click.testing import CliRunner

from aimbot_lab.bench.bridge import FULL, started
from aimbot_lab.cli.bench import bench
from aimbot_lab.mlagents.exception import UnityEnvironmentException


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


def test_a_build_that_ends_by_itself_is_reported() -> None:
    with (
        pytest.raises(UnityEnvironmentException, match="ended with exit code 3"),
        started("-c", "import sys; sys.exit(3)") as one,
    ):
        one.receive_bytes()

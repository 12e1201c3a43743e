"""A client written from what is public of Aimbot-ParallelEnv plays the exported build unchanged."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.mlagents.base_env import ActionSpec
from tests.mlagents.original_client import LOG_ID, STOP, OriginalClient, walk

OPEN_GROUND = """
name: open
env: {time_limit: 8.0}
lessons: [{name: all, targets: {goto: 1}, difficulty: {goto: [1, 0, 0, 0, 0]}}]
train: {algo: ppo, total_steps: 2_048, n_steps: 32, batch_size: 32}
"""


def exported(folder: Path) -> Path:
    (folder / "open.yaml").write_text(OPEN_GROUND, encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["export-player", str(folder), "--original", "--curriculum", f"{folder}/open.yaml"]
    )
    assert done.exit_code == 0, done.output
    return Path(done.output.strip())


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OriginalClient]:
    one = OriginalClient(exported(tmp_path_factory.mktemp("build")))
    yield one
    assert one.close() == 0


def turned(client: OriginalClient, mouse: float) -> float:
    """Radians that one action turned it."""
    before = client.now.yaw
    client.step(STOP, STOP, 0, mouse)
    return (client.now.yaw - before) % (2 * math.pi)


def test_it_sees_and_does_what_the_description_says(client: OriginalClient) -> None:
    assert client.name == "AimbotLab?team=0"
    assert [sensor.shape for sensor in client.spec.observation_specs] == [(51,)]
    assert client.spec.action_spec == ActionSpec(1, (3, 3, 2))
    assert client.now.target == 1
    assert set(client.now.tags) <= {-1.0, 0.0, 1.0, 2.0}
    assert 7.0 < client.now.seconds_left <= 8.0


def test_the_mouse_is_raw(client: OriginalClient) -> None:
    for mouse in (1.0, 10.0, -0.5):
        assert turned(client, mouse) == pytest.approx(0.08 * mouse % (2 * math.pi), abs=1e-5)


def test_a_script_wins_and_loses_by_lines_and_rewards(client: OriginalClient) -> None:
    while not client.ended:
        client.step(STOP, STOP, 0, 0.0)
    assert client.lines == ["Warning|Result|Lose"]
    assert client.reward == pytest.approx(-999, abs=20)
    assert walk(client) == pytest.approx(999, abs=20)
    assert client.lines == ["Warning|Result|Lose", "Warning|Result|Win"]
    assert client.channels == {LOG_ID}

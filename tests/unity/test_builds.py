"""Builds in processes: how they are started, and the line that each failure gives."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError
from aimbot_lab.foundation.world import new_notices
from aimbot_lab.mlagents.builds import Build, Launch, program_of
from aimbot_lab.mlagents.exception import UnityTimeOutException
from aimbot_lab.worlds.unity import channels
from aimbot_lab.worlds.unity.settings import UnitySettings
from aimbot_lab.worlds.unity.world import UnityWorld
from aimbot_lab.worlds.unity.world_type import UnityType
from tests.unity.played_builds import begun, shape_of, stepped
from tests.unity.stand_in_build import AGENTS, write_build
from tests.worlds.race import Race

pytestmark = pytest.mark.usefixtures("trusted")

pytest.importorskip("grpc")
ROOT = Path(__file__).parents[2]
WAIT = 60.0  # s, after which a test has failed


@pytest.fixture
def build(tmp_path: Path) -> Any:
    """Writes a build that fails by a mode; the path of its program."""

    return lambda mode: str(write_build(tmp_path, mode))


def world_of(file_name: str, rows: int = AGENTS, **given: Any) -> UnityWorld:
    settings = UnitySettings(file_name=file_name, num_envs=rows, **given)
    return UnityWorld(settings, shape_of(Race(AGENTS)))


def is_gone(pid: int) -> bool:
    """Whether process `pid` ends while this waits for it."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], WAIT)[0])
    finally:
        os.close(watched)


def test_a_build_is_asked_for_its_shape_played_restarted_where_it_was_killed_and_ended(
    build: Any,
) -> None:
    settings = UnitySettings(file_name=build("plain"), num_envs=4)
    kind = UnityType()
    assert kind.spec(settings).observation_names == ("place", "steps")
    assert dict(kind.targets(settings)) == {"right": 0}
    world: Any = kind.make(settings)
    buffers = begun(world)
    pids = [one.link.pid for one in world._builds]
    assert len(pids) == 2
    ended = [world.step(np.full((4, 1), 2, np.float32), buffers) for _ in range(3)][-1]
    assert ended.won.tolist() == [True] * 4
    assert ended.columns["farthest"].tolist() == [3.0] * 4
    new_notices(world)
    os.kill(pids[0], signal.SIGKILL)
    stepped(world, buffers, 1)
    assert buffers.truncated.tolist() == [True] * AGENTS + [False]
    assert world.dropped_episodes == AGENTS
    (notice,) = new_notices(world)
    assert "Race.x86_64) was killed by SIGKILL; restarted, 3 episodes dropped" in notice
    assert world._builds[0].link.pid not in pids
    pids.append(world._builds[0].link.pid)
    world.close()
    assert all(is_gone(pid) for pid in pids)


def test_a_build_that_hangs_is_killed_and_restarted(build: Any) -> None:
    world = world_of(build("hang"), max_lifetime_restarts=1)
    buffers = begun(world)
    pid = world._builds[0].link.pid  # type: ignore[attr-defined]
    world._builds[0].link._wait = 1.0  # type: ignore[attr-defined]
    stepped(world, buffers, 4)
    (notice,) = new_notices(world)
    assert "sent nothing within 1 s (env.timeout_wait); restarted, 3 episodes dropped" in notice
    assert is_gone(pid)
    world.close()


@pytest.mark.parametrize(
    ("mode", "line"),
    [
        ("crash", "ended with exit code 3; its last line: Segmentation fault in Monster.cs; it "),
        ("goes", "said that it goes; it was restarted 0 times"),
        ("long", "sent a message of 65.0 MiB, and 64 are taken: let it have fewer agents"),
        ("rubbish", "build 0: a message can't be read: it is not one of ML-Agents"),
    ],
)
def test_a_build_that_fails_ends_the_run_in_a_line(build: Any, mode: str, line: str) -> None:
    world = world_of(build(mode), max_lifetime_restarts=0)
    buffers = begun(world)
    pid = world._builds[0].link.pid  # type: ignore[attr-defined]
    with pytest.raises(ForeignCodeError) as raised:
        stepped(world, buffers, 9)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(raised.value).count("build 0") == 1
    world.close()
    assert is_gone(pid)


@pytest.mark.parametrize(
    ("mode", "wait_s", "line"),
    [
        ("version", 60.0, "speaks version '2.5.0' of the protocol, this trainer 1.5.0"),
        ("silent", 1.0, "Race.x86_64) sent nothing within 1 s (env.timeout_wait)"),
        ("too many", 60.0, "ended with exit code 2; its last line: agents: 9 rows make messages"),
    ],
)
def test_a_build_that_can_not_be_asked_is_refused(
    build: Any, mode: str, wait_s: float, line: str
) -> None:
    settings = UnitySettings(file_name=build(mode), timeout_wait=wait_s)
    with pytest.raises(ConfigurationError) as raised:
        UnityType().spec(settings)
    assert str(raised.value).startswith("env.file_name: ")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_editor_is_waited_for_aloud(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    editor = Build(Launch(None, base_port=port, timeout_wait=0.01), 0)
    assert caplog.messages == [f"waiting on port {port}: press Play in the Unity editor"]
    with pytest.raises(UnityTimeOutException, match=r"0\.01 s .*: press Play in the Unity editor"):
        editor.receive()
    editor.close(at_once=True)


def test_an_editor_has_no_more_agents_than_its_scene(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "probe", lambda _: shape_of(Race(AGENTS)))
    assert UnityType().spec(UnitySettings(num_envs=AGENTS)).observation_names
    with pytest.raises(ConfigurationError, match=r"scene has 3 agents.*: set it to 3 or less"):
        UnityType().spec(UnitySettings(num_envs=AGENTS + 1))


def test_a_port_in_use_is_refused(build: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} is in use: choose another env"):
            Build(Launch(build("plain"), base_port=port), 0)


def test_a_program_that_is_missing_or_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no build .*Nothing"):
        program_of(str(tmp_path / "Nothing"))
    (tmp_path / "Game.x86_64").write_text("no program", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"can't be executed: chmod \+x"):
        program_of(str(tmp_path / "Game"))
    (tmp_path / "Game.x86_64").chmod(0o755)
    assert program_of(str(tmp_path / "Game")) == tmp_path / "Game.x86_64"
    with pytest.raises(ConfigurationError, match="can't be started: OSError"):
        Build(Launch(str(tmp_path / "Game")), 0)


def test_without_grpc_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'aimbot-lab\[unity\]'"):
        UnityType().spec(UnitySettings(file_name=sys.executable))


def test_builds_end_when_their_trainer_vanishes(build: Any) -> None:
    code = (
        "import sys, numpy as np\n"
        "from tests.unity.test_builds import world_of, begun\n"
        f"world = world_of({build('plain')!r}); begun(world)\n"
        "print(world._builds[0].link.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    trainer = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert trainer.stdout is not None
    pid = int(trainer.stdout.readline())
    trainer.kill()
    trainer.communicate()
    assert is_gone(pid)

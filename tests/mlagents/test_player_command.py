"""`aimbot-lab player` and `export-player`: what they take, and what they refuse."""

import os
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.mlagents import grpc_link
from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.mlagents.session import PlayerSession
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG


def called(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def done_well(*arguments: str) -> str:
    """What is printed by a command that ends well."""
    done = called(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PlayerSession, int]]:
    """Sessions that would be played, with their ports."""
    sessions: list[tuple[PlayerSession, int]] = []

    def play(session: PlayerSession, port: int, *, wait_s: float) -> None:
        sessions.append((session, port))

    monkeypatch.setattr(grpc_link, "play", play)
    return sessions


def test_options_are_those_that_trainers_give_and_others_of_unity_are_ignored(
    played: list[Any], tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "Player-0.log"
    done_well(
        *("player", "-nographics", "-batchmode", "--mlagents-port", "5006", "-logFile", str(log)),
        *("-screen-width", "84", "--agents", "3", "--curriculum", "goto", "--unknown"),
    )
    ((session, port),) = played
    assert port == 5006
    assert session._world.num_envs == 3
    assert session._reports == (STATS,)
    assert log.is_file()


@pytest.mark.parametrize(
    ("given", "reports"),
    [
        ((), (STATS, STRING_LOG)),
        (("--log-channel", "off"), (STATS,)),
        (("--log-channel", "on", "--stats", "off"), (STRING_LOG,)),
    ],
)
def test_results_are_told_as_asked(
    played: list[Any], given: tuple[str, ...], reports: tuple[Any, ...]
) -> None:
    done_well("player", "--mlagents-port", "5004", "--agents", "1", *given)
    assert played[0][0]._reports == reports


def test_a_player_for_a_client_of_the_original_has_its_names_actions_and_lines(
    played: list[Any],
) -> None:
    log = "11111111-2222-3333-4444-555555555555"
    done_well(
        *("player", "--mlagents-port", "5004", "--agents", "1", "--actions", "raw"),
        *("--result-lines", "plain", "--stats", "off", "--behavior", "Aim", "--log-id", log),
    )
    ((session, _),) = played
    assert (session._name, session._reports) == ("Aim", (UUID(log),))
    assert (session._raw, session._channels._plain) == (True, True)
    assert session._world.settings.mouse_limit == 1000


@pytest.mark.parametrize("agents", ["65537", "1" + "0" * 30])
def test_more_agents_than_the_world_has_rows_for_are_refused_in_a_line(
    agents: str, played: list[Any]
) -> None:
    done = called("player", "--mlagents-port", "5004", "--agents", agents)
    assert isinstance(done.exception, ConfigurationError)
    assert str(done.exception) == (
        f"{int(agents):,} rows (episodes or agents at once): world arena takes at most 65,536"
    )
    assert played == []


def test_a_player_without_a_port_is_refused() -> None:
    done = called("player")
    assert done.exit_code == 2
    assert "--mlagents-port" in done.output


def test_why_a_player_ends_stands_in_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def play(*_: object, **__: object) -> None:
        raise UnityEnvironmentException("the trainer speaks Latin")

    monkeypatch.setattr(grpc_link, "play", play)
    log = tmp_path / "player.log"
    done = called("player", "--mlagents-port", "5004", "--agents", "1", "-logFile", str(log))
    assert isinstance(done.exception, UnityEnvironmentException)
    assert log.read_text(encoding="utf-8").endswith("the trainer speaks Latin\n")


def test_without_grpc_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    done = called("player", "--mlagents-port", "5004", "--agents", "1")
    assert isinstance(done.exception, ConfigurationError)
    assert str(done.exception).endswith("pip install 'aimbot-lab[unity]'")


def test_an_exported_player_is_a_program_that_runs_this_installation(tmp_path: Path) -> None:
    for _ in range(2):  # a second time it is written anew
        printed = done_well("export-player", str(tmp_path / "build"))
    path = tmp_path / "build" / "AimbotLab.x86_64"
    assert printed.strip() == str(path)
    assert os.access(path, os.X_OK)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert f'{sys.executable} -m aimbot_lab player "$@"' in text


def test_an_exported_player_has_the_options_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    given = ("--curriculum", os.path.relpath(tmp_path / "mine.yaml"), "--behavior", "A b")
    done_well("export-player", str(tmp_path), "--original", *given)
    options = "--actions=raw --result-lines=plain --stats=off --log-channel=on --agents=1"
    options += f" --curriculum={tmp_path}/mine.yaml '--behavior=A b'"
    text = (tmp_path / "AimbotLab.x86_64").read_text(encoding="utf-8")
    assert f'-m aimbot_lab player {options} "$@"' in text


def test_a_folder_whose_path_ml_agents_misreads_is_refused(tmp_path: Path) -> None:
    done = called("export-player", str(tmp_path / ".apps"))
    assert isinstance(done.exception, ConfigurationError)
    assert "with .app in its path" in str(done.exception)
    assert not (tmp_path / ".apps").exists()


def test_another_file_of_that_name_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "AimbotLab.x86_64"
    path.write_bytes(b"\x7fELF\xff")
    done = called("export-player", str(tmp_path))
    assert isinstance(done.exception, ConfigurationError)
    assert path.read_bytes() == b"\x7fELF\xff"


def test_rays_and_camera_are_asked_for_by_options(played: list[Any]) -> None:
    done_well(
        *("player", "--mlagents-port", "5006", "--agents", "2", "--rays", "ml-agents"),
        *("--camera", "20x10", "--rgb", "--png"),
    )
    ((session, _),) = played
    told = session._world.settings.observation
    assert (told.rays, told.camera.width, told.camera.height) == ("ml-agents", 20, 10)
    assert not told.camera.grey
    assert session._codec.__name__ == "PictureInfoCodec"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("--lesson", "99"), "--lesson: goto has"),
        (("--camera", f"{'9' * 5000}x10"), "must be WIDTHxHEIGHT"),
        (("--camera", "2x10"), "env.observation.camera.width"),
        (("--rgb",), "--rgb needs --camera"),
        (("--curriculum", "gorge", "--camera", "20x10"), "env.observation"),
    ],
)
def test_a_lesson_or_camera_that_there_is_not_is_refused_in_a_line(
    played: list[Any], given: tuple[str, ...], line: str
) -> None:
    done = called("player", "--mlagents-port", "5006", *given)
    assert isinstance(done.exception, ConfigurationError) or done.exit_code == 2
    said = f"{done.exception} {done.output}"
    assert line in said
    assert "Traceback" not in said
    assert not played

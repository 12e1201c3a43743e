"""`replay` and `record` on files: what they show, write and refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from PIL import Image

from aimbot_lab.cli.main import cli
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.replay.episode import load_replay, replay_text
from aimbot_lab.replay.film import frames_held
from tests.replay.recorded_episodes import replay_of


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replays") / "episode.json"
    path.write_text(replay_text(replay_of("goto", time_limit=0.6)))
    return path


def invoke(*words: Any) -> Any:
    result = CliRunner().invoke(cli, list(map(str, words)), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_replay_tells_how_the_episode_went(episode: Path) -> None:
    output = invoke("replay", episode).output
    assert "goto, difficulty" in output
    assert "lost after 0.6 s" in output
    assert "6 decisions" in output
    assert "\x1b" not in output  # no terminal


def test_replay_as_json_is_one_document(episode: Path) -> None:
    document = json.loads(invoke("replay", episode, "--json").stdout)
    assert document["decisions"] == 6
    assert document["won"] is False
    assert document["trajectory_sha256"] == load_replay(episode).trajectory_sha256


def test_replay_writes_a_picture_of_every_decision(episode: Path, tmp_path: Path) -> None:
    invoke("replay", episode, "--frames", tmp_path / "pictures", "--size", 120)
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == [f"{number:04}.png" for number in range(7)]
    with Image.open(tmp_path / "pictures" / "0000.png") as picture:
        assert picture.size == (180, 120)


def test_record_films_replays_in_a_grid(episode: Path, tmp_path: Path) -> None:
    film = tmp_path / "film.gif"
    invoke("record", episode, episode, "-o", film, "--grid", "2x1", "--size", 120)
    with Image.open(film) as found:
        assert found.size == (360, 120)
        assert found.n_frames >= 7


def test_speed_shortens_the_film(episode: Path, tmp_path: Path) -> None:
    film = tmp_path / "film.gif"
    invoke("record", episode, "-o", film, "--size", 120, "--speed", 2)
    with Image.open(film) as found:
        total = 0
        for place in range(found.n_frames):
            found.seek(place)
            total += found.info["duration"]
    assert total == (7 + frames_held(load_replay(episode))) * 50


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-o", "film.avi"], r"must end with \.mp4 or \.gif"),
        (["-o", "nowhere/film.gif"], "no such folder"),
    ],
)
def test_record_refuses_before_it_plays(episode: Path, words: list[str], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        invoke("record", episode, *words)


def test_record_says_which_file_is_missing(episode: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone\.json: no such replay"):
        invoke("record", episode, "gone.json", "-o", tmp_path / "film.gif")


@pytest.mark.parametrize("grid", ["0x1", "2", "9x9"])
def test_a_grid_that_is_none_is_refused(episode: Path, grid: str) -> None:
    result = CliRunner().invoke(cli, ["record", str(episode), "-o", "a.gif", "--grid", grid])
    assert result.exit_code == 2
    assert "columns x rows" in result.output


@pytest.mark.parametrize(
    ("output", "reason"),
    [("agent.pt", r"must end with \.onnx"), ("nowhere/agent.onnx", "no such folder")],
)
def test_export_refuses_before_it_looks_for_the_run(output: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        invoke("export", "latest", "-o", output)

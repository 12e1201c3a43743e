"""`replay` and `record` on files: what they show, write and refuse."""

from pathlib import Path

import pytest
from PIL import Image
from tiny_runs import invoke_plainly

from aimbot_lab.replay.episode import load_replay, replay_text
from aimbot_lab.replay.film import frames_held
from tests.replay.recorded_episodes import replay_of


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replays") / "episode.json"
    path.write_text(replay_text(replay_of("goto", time_limit=0.6)))
    return path


def test_replay_tells_how_the_episode_went_or_is_one_document_as_json(episode: Path) -> None:
    told = invoke_plainly("replay", episode)
    output = told.output + told.said
    for part in ("goto, difficulty", "lost after 0.6 s", "6 decisions"):
        assert part in output
    assert "\x1b" not in output  # no terminal
    document = invoke_plainly("replay", episode, "--json").document
    assert document["decisions"] == 6
    assert document["won"] is False
    assert document["trajectory_sha256"] == load_replay(episode).trajectory_sha256


def test_replay_writes_a_picture_of_every_decision(episode: Path, tmp_path: Path) -> None:
    invoke_plainly("replay", episode, "--frames", tmp_path / "pictures", "--size", 120)
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == [f"{number:04}.png" for number in range(7)]
    with Image.open(tmp_path / "pictures" / "0000.png") as picture:
        assert picture.size == (180, 120)


def test_record_films_replays_in_a_grid(episode: Path, tmp_path: Path) -> None:
    film = tmp_path / "film.gif"
    invoke_plainly("record", episode, episode, "-o", film, "--grid", "2x1", "--size", 120)
    with Image.open(film) as found:
        assert found.size == (360, 120)
        assert found.n_frames >= 7


def test_speed_shortens_the_film(episode: Path, tmp_path: Path) -> None:
    film = tmp_path / "film.gif"
    invoke_plainly("record", episode, "-o", film, "--size", 120, "--speed", 2)
    with Image.open(film) as found:
        total = 0
        for place in range(found.n_frames):
            found.seek(place)
            total += found.info["duration"]
    assert total == (7 + frames_held(load_replay(episode))) * 50


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["record", "EPISODE", "-o", "film.avi"], "must end with .mp4 or .gif"),
        (["record", "EPISODE", "-o", "nowhere/film.gif"], "no such folder"),
        (["record", "EPISODE", "gone.json", "-o", "film.gif"], "gone.json: no such replay"),
        *(
            (["record", "EPISODE", "-o", "a.gif", "--grid", grid], "columns x rows")
            for grid in ("0x1", "2", "9x9")
        ),
        (["export", "latest", "-o", "agent.pt"], "must end with .onnx"),
        (["export", "latest", "-o", "nowhere/agent.onnx"], "no such folder"),
    ],
)
def test_record_and_export_refuse_before_they_play_or_look_for_the_run(
    episode: Path, here: Path, words: list[str], reason: str
) -> None:
    given = [str(episode) if word == "EPISODE" else word for word in words]
    assert reason in invoke_plainly(*given, wanted=2).said

"""Pictures, films and terminal text show what happened, as often as it happened."""

import builtins
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from aimbot_lab.foundation.display import Gauge, Mind
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.replay import film as caption_panel
from aimbot_lab.replay.episode import lesson_title, player_words, replay_steps
from aimbot_lab.replay.film import (
    PRESSED,
    Film,
    FrameStyle,
    Grid,
    bar_scale,
    check_film,
    colours,
    frame_count,
    frames,
    grid_frames,
    shown_sum,
    write_film,
)
from aimbot_lab.replay.terminal import Screen, half_blocks, screens
from aimbot_lab.worlds.arena.core.state import AT, REWARD_TERMS
from tests.replay.recorded_episodes import replay_of

SMALL = FrameStyle(size=120)


@pytest.fixture(scope="module")
def won() -> Any:
    return replay_of("goto", goto_win_radius=25.0)


@pytest.fixture(scope="module")
def lost() -> Any:
    return replay_of("goto", time_limit=0.8)


def banner(picture: np.ndarray) -> tuple[int, ...]:
    """The colour at the foot of the panel, at its right edge."""
    return tuple(int(part) for part in picture[-2, -2])


def test_there_is_a_picture_of_the_beginning_and_of_every_decision(won: Any) -> None:
    shown = list(frames(won, SMALL))
    assert len(shown) == 1 + len(won.episode.actions)
    assert {picture.shape for picture in shown} == {(120, 180, 3)}
    assert all((a != b).any() for a, b in pairwise(shown))


def test_a_panel_shows_what_the_agent_thought(lost: Any) -> None:
    count = len(lost.episode.actions)
    sure = np.tile([0.0, 1.0, 0.0], (count, 1))
    mind = Mind(np.arange(count, dtype=np.float64), (sure, sure, np.tile([1.0, 0.0], (count, 1))))
    without, with_it = (list(frames(one, SMALL)) for one in (lost, replace(lost, mind=mind)))
    pairs = list(zip(without, with_it, strict=True))
    assert all((a[:, :120] == b[:, :120]).all() for a, b in pairs)  # the arena
    assert all((a[:, 120:] != b[:, 120:]).any() for a, b in pairs)
    blue = (np.array(with_it[1])[:, 120:] == PRESSED).all(axis=2).sum()
    idle = (np.array(with_it[0])[:, 120:] == PRESSED).all(axis=2).sum()
    assert blue > idle  # of what was taken


def test_only_the_last_picture_tells_the_result(won: Any, lost: Any) -> None:
    for replay, colour in ((won, caption_panel.GAIN), (lost, caption_panel.LOST)):
        *before, last = map(banner, frames(replay, SMALL))
        assert last == colour
        assert set(before) == {caption_panel.PAPER}


def test_the_goal_is_told_with_what_is_left_of_it() -> None:
    for target, words in (("goto", "reach the circle"), ("free", "6 left"), ("attack", "circle: ")):
        first = next(replay_steps(replay_of(target).episode))
        assert words in first.scene.goal
    assert lesson_title(replay_of("free")) == "lesson 2: walls"


def test_bars_share_one_scale_and_leave_the_result_out() -> None:
    totals = np.zeros(len(REWARD_TERMS))
    totals[[AT.rewards_win, AT.rewards_distance, AT.rewards_move_penalty]] = 999.0, 40.0, -80.0
    scale = bar_scale(totals, [AT.rewards_win, AT.rewards_lose])
    assert scale[AT.rewards_distance] == scale[AT.rewards_move_penalty] == 80.0
    assert scale[AT.rewards_win] == scale[AT.rewards_in_area] == 0.0


@pytest.mark.parametrize(
    ("value", "scale", "shown"),
    [
        (0.953, 0.953, "+0.953"),
        (1.0, 0.0, "+1.00"),
        (1e-9, 1e-9, "+0.000000"),
        (-1234.5, 1234.5, "-1,234"),
    ],
)
def test_small_sums_of_rewards_have_decimals(value: float, scale: float, shown: str) -> None:
    assert shown_sum(value, scale) == shown


@pytest.mark.parametrize("grid", [Grid(), Grid(2, 2)])
def test_a_grid_shows_every_replay_to_its_end(won: Any, lost: Any, grid: Grid) -> None:
    replays = [won, lost, won]
    shown = list(grid_frames(replays, grid, SMALL))
    assert len(shown) == frame_count(replays, grid)
    assert {p.shape for p in shown} == {(grid.rows * 120, grid.columns * 180, 3)}
    ends = sum(
        banner(before) != caption_panel.PAPER and banner(after) == caption_panel.PAPER
        for before, after in pairwise(shown)
    )
    assert grid.panes > 1 or ends == 2  # one after another in the same place


def test_the_end_stands_for_a_while(won: Any) -> None:
    shown = list(grid_frames([won], Grid(), SMALL))
    assert all((picture == shown[-1]).all() for picture in shown[-15:])
    assert (shown[-17] != shown[-1]).any()


def test_a_gif_has_every_picture_and_keeps_the_colours(tmp_path: Path, won: Any) -> None:
    shown = list(frames(won, SMALL))
    path = tmp_path / "won.gif"
    write_film(path, Film(iter(shown), 10.0, colours([won])))
    with Image.open(path) as film:
        times = []
        for place in range(film.n_frames):
            film.seek(place)
            times.append(film.info["duration"])
        last = np.array(film.convert("RGB"))
    assert sum(times) == 100 * len(shown)
    assert banner(last) == caption_panel.GAIN
    # In pixels that hold a single colour the few of a GIF are enough.
    exact = (last == shown[-1]).all(axis=2).mean()
    assert exact > 0.5


def test_an_mp4_is_a_film_of_even_size(tmp_path: Path, won: Any) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg").get_ffmpeg_exe()
    path = tmp_path / "won.mp4"
    shown = list(frames(won, FrameStyle(size=121)))
    write_film(path, Film(iter(shown), 10.0))
    command = [ffmpeg, "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    back = subprocess.run(command, capture_output=True, check=True).stdout
    films = np.frombuffer(back, np.uint8).reshape(-1, 120, 180, 3)
    assert len(films) == len(shown)
    assert np.abs(films[-1].astype(int) - shown[-1][:120, :180]).mean() < 8


def test_what_ffmpeg_says_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, won: Any
) -> None:
    pytest.importorskip("imageio_ffmpeg")
    monkeypatch.setattr("aimbot_lab.replay.film.CRF", "nonsense")
    with pytest.raises(LabError, match=r"ffmpeg could not make the film: .+"):
        write_film(tmp_path / "won.mp4", Film(frames(won, SMALL), 10.0))
    assert list(tmp_path.iterdir()) == []


def test_a_film_that_breaks_off_leaves_no_file(tmp_path: Path, won: Any) -> None:
    path = tmp_path / "won.gif"
    path.write_text("older")

    def broken() -> Any:
        yield next(frames(won, SMALL))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(path, Film(broken(), 10.0))
    assert [p.name for p in tmp_path.iterdir()] == ["won.gif"]
    assert path.read_text() == "older"


@pytest.mark.parametrize("name", ["film.avi", "nowhere/film.gif"])
def test_a_film_that_can_not_be_written_is_refused_beforehand(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        check_film(tmp_path / name)


def test_without_ffmpeg_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "imageio_ffmpeg":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"aimbot-lab\[video\]"):
        check_film(tmp_path / "film.mp4")


def test_two_pixels_make_a_character() -> None:
    picture = np.zeros((4, 3, 3), np.uint8)
    picture[0, :, 0] = 255
    lines = half_blocks(picture, true_colour=True)
    assert len(lines) == 2
    assert lines[0].count("▀") == 3
    assert "\x1b[38;2;255;0;0m\x1b[48;2;0;0;0m" in lines[0]
    assert half_blocks(picture, true_colour=False)[0].startswith("\x1b[38;5;196m\x1b[48;5;16m")


def test_a_terminal_shows_every_decision_in_the_room_there_is(won: Any) -> None:
    screen = Screen(columns=80, lines=24, true_colour=True)
    shown = list(screens(won, screen))
    assert len(shown) == 1 + len(won.episode.actions)
    assert all(text.count("\n") < screen.lines for text in shown)
    assert "WON" in shown[-1]
    assert all("WON" not in text for text in shown[:-1])
    assert "reach the circle" in shown[0]


def test_a_film_says_who_played_and_how_the_actions_were_drawn(won: Any) -> None:
    known = replace(won, about={**won.about, "agent": "best", "player": "temperature 0.5"})
    assert player_words(known) == "best agent, temperature 0.5"
    assert player_words(replace(won, about={})) == ""
    screen = Screen(columns=80, lines=24, true_colour=True)
    assert "best agent, temperature 0.5" in next(iter(screens(known, screen)))
    small = FrameStyle(size=240)
    one, other = (next(iter(frames(replay, small))) for replay in (known, replace(won, about={})))
    assert (one != other).any()


@pytest.mark.parametrize("count", [1, 6, 17])
def test_however_many_numbers_an_action_has_their_bars_do_not_touch(count: int) -> None:
    zero = np.zeros(1)
    gauges = [Gauge(f"action_{number}", 0.5) for number in range(count)]
    told = caption_panel.PanelText("", "", "", gauges, ("a",), zero, zero, zero, None, outcome=-1)
    picture = np.array(caption_panel.Panel(240, 480, told).picture)
    rows = (picture == caption_panel.PRESSED).all(axis=2).any(axis=1)
    bars = int((np.diff(rows.astype(int)) == 1).sum())
    assert bars == min(count, caption_panel.MAX_CONTROLS - (count > caption_panel.MAX_CONTROLS))
    below = round(caption_panel.REWARDS_TOP * 480 / caption_panel.MIN_LINES)
    assert not rows[below:].any()

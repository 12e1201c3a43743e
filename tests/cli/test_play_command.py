"""`play`: by commands in this process, and by keys in a terminal of its own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from terminal_session import TerminalSession
from tiny_runs import Told, invoke_plainly

from aimbot_lab.cli.commands.play import _obey, keys_in, screen_text
from aimbot_lab.foundation.display import GameRequest
from aimbot_lab.replay.episode import load_replay
from aimbot_lab.replay.terminal import PlaySession, playable_world
from aimbot_lab.worlds.gorge.gorge import Gorge

WALK = ("--target", "walk", "--difficulty", 1, "--seed", 3)
NAMES = ("up", "down", "left", "right")


def play(*words: Any, wanted: int = 0, **options: Any) -> Told:
    return invoke_plainly("play", *words, wanted=wanted, **options)


def new_session() -> PlaySession:
    request = GameRequest(target="walk", difficulty=1)
    return PlaySession(playable_world(), request, seed=3, fog=True)


@pytest.fixture(scope="module")
def way() -> list[str]:
    """Commands that walk to the end in the game WALK."""
    world: Gorge = new_session().world
    return [NAMES[move] for move in world.best_walk(0).actions.tolist()]


def commands(folder: Path, *lines: str) -> Path:
    path = folder / "moves.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_commands_play_a_game_that_replay_plays_the_same(tmp_path: Path, way: list[str]) -> None:
    file = commands(tmp_path, "# the way", "", *way[:-1], f"{NAMES.index(way[-1])}  # the last")
    saved = tmp_path / "game.json"
    told = play(*WALK, "--commands", file, "--save", saved)
    line, numbers = told.output.splitlines()
    assert line.startswith(f"Warning|Result|Win|target=walk|difficulty=1|steps={len(way)}|bumps=0|")
    assert numbers.endswith(", share 1")
    replay = load_replay(saved)
    assert replay.episode.line == line
    assert replay.about["player"] == "a person"
    summary = invoke_plainly("replay", saved, "--json").document
    assert summary["decisions"] == len(way)
    assert summary["bumps"] == summary["treasures"] == 0
    invoke_plainly("record", saved, "-o", tmp_path / "game.gif")
    assert (tmp_path / "game.gif").stat().st_size > 0


def test_each_step_is_told_as_raw_data_or_as_what_is_seen(tmp_path: Path, way: list[str]) -> None:
    file = commands(tmp_path, *way)
    told = play(*WALK, "--commands", file, "--json")
    frames = [json.loads(line) for line in told.output.splitlines()]
    assert [frame["step_no"] for frame in frames] == [*range(1, len(way) + 1)]
    assert frames[-1]["total_score"] == pytest.approx(150 + 0.2 * (2000 - len(way)))
    assert told.said.startswith("Warning|Result|Win|")
    windows = play(*WALK, "--commands", file, "--visualize").output.split("\n\n")
    assert len(windows) == len(way) + 1  # and the result
    for window in windows[:-1]:
        rows = window.strip("\n").split("\n")
        assert [len(row) for row in rows] == [5] * 5
        assert rows[2][2] == "@"


def test_commands_come_from_the_standard_input_where_that_is_no_terminal(way: list[str]) -> None:
    told = play(*WALK, input="\n".join(way))
    assert told.output.startswith("Warning|Result|Win|")
    assert play(*WALK, "--no-fog", input="\n".join(way)).output.endswith("the fog was lifted\n")
    assert play(*WALK, input="up\n").output == ""
    assert play(*WALK, input=b"\xff\n", wanted=2).said == "the standard input is not UTF-8 text"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--target", "gotoo"], "--target: unknown target 'gotoo' (valid: walk, collect, score)"),
        (
            ["--target", "score", "--difficulty", "2"],
            "--difficulty: score has no difficulties: leave it out",
        ),
        (["--target", "walk", "--difficulty", "6"], "--difficulty: must be 1 to 5 (got 6)"),
        (["--treasures", "a"], "--treasures: must be a number, or sites as 0,3,4 (got 'a')"),
        (["--world", "arena"], "--world: arena can't be played in a terminal (valid: gorge)"),
        (
            ["--commands", "nope.txt"],
            "--commands nope.txt: can't be read: No such file or directory",
        ),
    ],
)
def test_a_game_that_there_is_not_is_refused_in_a_line(
    here: Path, words: list[str], line: str
) -> None:
    assert play(*words, "--save", "game.json", wanted=2).said == line
    assert list(here.iterdir()) == []


def test_a_file_that_no_game_can_be_saved_to_is_refused_by_the_option_that_names_it(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "nowhere" / "game.json"
    told = play(*WALK, "--save", missing, wanted=2)
    assert told.said == f"--save {missing}: there is no such folder"


def test_wrong_commands_are_refused_with_their_line_and_nothing_is_saved(
    tmp_path: Path, way: list[str]
) -> None:
    saved = tmp_path / "game.json"
    known = "allowed are up, down, left, right, 0, 1, 2, 3"
    file = commands(tmp_path, *["up"] * 5, "", "jump")
    told = play("--commands", file, "--save", saved, wanted=2)
    assert told.said == f"line 7: 'jump' is not a command; {known}"
    assert told.output == ""
    file = commands(tmp_path, *way, "", "up")
    told = play(*WALK, "--commands", file, "--save", saved, wanted=2)
    assert told.said == f"line {len(way) + 2}: the game ended in line {len(way)}"
    told = play(*WALK, "--commands", commands(tmp_path, "up"), "--save", saved, wanted=1)
    assert told.said == "no replay is saved: the game did not end"
    assert not saved.exists()


def test_keys_are_read_however_they_come_apart() -> None:
    assert keys_in("wA\x1b[A\x1bOD") == (["w", "a", "up", "left"], "")
    assert keys_in("d\x1b[") == (["d"], "\x1b[")
    assert keys_in("\x1b") == ([], "\x1b")
    assert keys_in("\x1b[1;5C\x1b[5~q") == (["right", "q"], "")


def session(*words: Any, **options: Any) -> TerminalSession:
    # Without an environment of its own it would have COLUMNS, which readline sets behind Python.
    options = {"env": {**os.environ}, **options}
    return TerminalSession(
        *("-m", "aimbot_lab", "play", *map(str, words)), output="screen", **options
    )


def test_a_game_by_keys_and_the_terminal_as_it_was(way: list[str]) -> None:
    """Arrows, fog and the same game again; at the end the result, and the screen as it was."""
    arrows = dict(zip(NAMES, "ABDC", strict=True))
    with session(*WALK, columns=100, lines=40) as terminal:
        before = terminal.attributes()
        terminal.press("q")  # typed before the game is there: dropped
        terminal.read_until("preparing the game")
        terminal.read_until("step 0 of 2000")
        assert terminal.attributes() != before
        terminal.press("wmr" + "".join(f"\x1b[{arrows[word]}" for word in way))
        terminal.read_until(f"steps={len(way)}")
        terminal.press("q")
        code, _ = terminal.finish()
        assert code == 0
        assert terminal.attributes() == before
    left = terminal.shown.partition("\x1b[?1049l")[2]
    assert left.startswith(f"Warning|Result|Win|target=walk|difficulty=1|steps={len(way)}|bumps=0|")


def test_signals_give_the_terminal_back_and_signs_take_the_place_of_colours() -> None:
    plain = {**os.environ, "NO_COLOR": "1"}
    with session(columns=60, lines=20, env=plain) as terminal:
        before = terminal.attributes()
        terminal.read_until("step 0 of 2000")
        terminal.read_until("@")
        assert "▀" not in terminal.shown
        terminal.press("\x03")
        assert terminal.finish()[0] == 130
        assert terminal.attributes() == before
        assert terminal.shown.endswith("stopped\r\n")
        assert "\x1b[?25h\x1b[?1049l" in terminal.shown


BROKEN = """
import sys
from aimbot_lab.cli.main import main
from aimbot_lab.cli.commands import play as keyboard
draw = keyboard.screen_text
def broken(session, size):
    draw(session, size)
    raise OSError(5, "broken")
keyboard.screen_text = broken
sys.argv = ["aimbot-lab", "play"]
main()
"""


def test_an_error_gives_the_terminal_back() -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    with TerminalSession(
        *("-c", BROKEN), columns=60, lines=20, output="screen", env=environment
    ) as terminal:
        before = terminal.attributes()
        assert terminal.finish()[0] == 1
        assert terminal.attributes() == before
    assert terminal.shown.endswith("\x1b[?25h\x1b[?1049lerror: broken\r\n")


def test_a_terminal_that_is_too_small_is_refused() -> None:
    with session(columns=18, lines=8) as terminal:
        code, _ = terminal.finish()
    assert code == 2
    lines = "the terminal has", "18 x 8 characters;", "play needs 40 x 16", ""  # broken at words
    assert terminal.shown.split("\r\n") == [*lines]


def test_a_new_game_is_another_and_the_same_again_is_the_same(way: list[str]) -> None:
    game = new_session()
    first = game.view().signs
    for key in [*way[:-1], "m", "r"]:
        _obey(game, key)
    assert (game.view().signs, game.seed, game.fog, game.lifted) == (first, 3, True, False)
    _obey(game, "n")
    assert game.seed == 4
    assert game.view().signs != first


def test_fog_hides_what_was_never_within_the_window_and_the_end_shows_a_best_way(
    way: list[str],
) -> None:
    game = new_session()
    assert sum(sign != " " for line in game.view().signs for sign in line) <= 25
    window = game.window()
    line, column = game.view().focus
    around = [row[column - 2 : column + 3] for row in game.view().signs[line - 2 : line + 3]]
    assert around == window
    game.lift_fog()
    assert all(" " not in row for row in game.view().signs)
    for word in way:
        game.act(word)
    shown = "".join(game.view().signs)
    assert shown.count("*") == len(way) - 1  # the cells between start and end
    assert game.result_lines()[1].endswith("share 1; the fog was lifted")


def test_the_screen_fits_the_terminal_and_keeps_the_hero_in_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = new_session()
    monkeypatch.setenv("NO_COLOR", "1")
    for columns, lines in ((40, 16), (88, 32), (200, 80)):
        text = screen_text(game, os.terminal_size((columns, lines)))
        rows = text.removeprefix("\x1b[H").removesuffix("\x1b[K\x1b[J").split("\x1b[K\n")
        assert len(rows) <= lines
        assert max(map(len, rows)) <= columns
        assert sum(row[: columns - 24].count("@") for row in rows) == 1
        assert "step 0 of 2000" in text
    monkeypatch.delenv("NO_COLOR")
    assert screen_text(game, os.terminal_size((88, 32))).count("\n") == 31
    assert "40 x 16" in screen_text(game, os.terminal_size((39, 16)))

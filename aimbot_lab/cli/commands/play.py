"""`aimbot-lab play`: play a world yourself, in the terminal or by commands."""

import json
import os
import select
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.stopping import handled_signals
from aimbot_lab.cli.text import check_output, document_stream, write_output
from aimbot_lab.foundation.errors import AbortedError, ConfigurationError
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.shown_text import one_line, shortened

if TYPE_CHECKING:
    from aimbot_lab.foundation.display import GameView
    from aimbot_lab.replay.terminal import PlaySession


MAX_SEED = 2**31 - 1

MAX_BYTES = 2**22  # of a file of commands
MAX_SHOWN = 40  # characters of a word in a refusal

PREPARING = "preparing the game (compiled once on a machine, for about 20 s) ..."
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a screen of its own, no cursor
ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
ESCAPE = "\x1b"
QUIT, AGAIN, NEW, LIFT = "q", "r", "n", "m"
SECONDS_BETWEEN_LOOKS = 0.5  # at the terminal's size
LOCAL_FLAGS, CONTROL_CHARACTERS = 3, 6  # places among the attributes of a terminal

MIN_COLUMNS, MIN_LINES = 40, 16
PANEL = 23  # columns
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
HELP = ("arrows, m fog", "r again, n new, q ends")


@click.command(short_help="Play a world yourself.")
@click.option("--world", help="The world. [default: the first that can be played]")
@click.option("--map", "place", metavar="MAP", help="A shipped map or a map file.")
@click.option("--treasures", "objects", help="How many treasures (5), or at which sites (0,3,4).")
@click.option("--target", help="The task. [default: the game itself]")
@click.option("--difficulty", type=click.IntRange(1), help="How difficult. [default: the hardest]")
@options.number("--seed", 1, (0, MAX_SEED), "Each seed is another game.")
@click.option("--fog/--no-fog", default=True, help="Whether to hide cells that were never seen.")
@click.option("--commands", type=click.Path(path_type=Path), help="Play the commands in a file.")
@click.option("--visualize", is_flag=True, help="Print the view after each command.")
@options.print_document("Print the raw data of each step, one line each.")
@click.option("--save", type=click.Path(path_type=Path), help="Keep the game as a replay.")
def play(
    world: str | None, seed: int, fog: bool, commands: Path | None, save: Path | None, **given: Any
) -> None:
    """Play a world yourself: arrow keys or WASD move, r plays the same game again, n a new one, m
    lifts the fog, q quits.

    With --commands, or if stdin is not a terminal, one command is read from each line: up, down,
    left, right, or 0 to 3; blank lines and # comments are skipped. The first game on a machine is
    compiled for about 20 s; keys typed meanwhile are dropped.

    \b
    Examples:
      aimbot-lab play
      aimbot-lab play --target walk --difficulty 2 --save walk.json
      aimbot-lab play --commands moves.txt --visualize
    """
    from aimbot_lab.foundation.display import GameRequest
    from aimbot_lab.replay.terminal import PlaySession, playable_world

    printed = {name: given.pop(name) for name in ("visualize", "as_json")}
    game = playable_world(world)
    if save is not None:
        check_output(save, option="--save")
    by_keys = commands is None and not any(printed.values()) and _on_a_terminal()
    if by_keys:
        columns, lines = _size()
        if columns < MIN_COLUMNS or lines < MIN_LINES:
            has, needs = f"{columns} x {lines}", f"{MIN_COLUMNS} x {MIN_LINES}"
            raise ConfigurationError(f"the terminal has {has} characters; play needs {needs}")
    words = None if by_keys else read_commands(commands, game.commands)
    begin = partial(PlaySession, game, GameRequest(**given), seed=seed, fog=fog)
    if words is None:
        session = play_by_keys(begin)
    else:
        session = begin()
        play_commands(session, words, **printed)
    if save is not None:
        from aimbot_lab.replay.episode import replay_text

        write_output(replay_text(session.replay()), save, option="--save")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


TypedCommand = tuple[int, str]
"""The line on which a word stands, counted from 1, and the word."""


def read_commands(path: Path | None, allowed: Collection[str]) -> Iterable[TypedCommand]:
    """The commands in the file at `path`, all checked; else those of the standard input, as they
    come.

    Raises ConfigurationError for a file that can't be read, and for an unknown command.
    """
    if path is None:
        return _checked(_typed(), allowed)
    try:
        text = read_bounded(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigurationError(f"--commands {path}: can't be read: {reason}") from error
    return list(_checked(text.splitlines(), allowed))


def _typed() -> Iterator[str]:
    """The lines of the standard input. Raises ConfigurationError where they are no text."""
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise ConfigurationError("the standard input is not UTF-8 text") from error


def _checked(lines: Iterable[str], allowed: Collection[str]) -> Iterator[TypedCommand]:
    for number, line in enumerate(lines, 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        if word not in allowed:
            shown = shortened(one_line(repr(word)), MAX_SHOWN)
            known = ", ".join(allowed)
            raise ConfigurationError(
                f"line {number}: {shown} is not a command; allowed are {known}"
            )
        yield number, word


def play_commands(
    session: "PlaySession", commands: Iterable[TypedCommand], *, visualize: bool, as_json: bool
) -> None:
    """Play `commands`, print what is asked for after each, and how the game ended.

    Raises ConfigurationError for a command after the end.
    """
    last = 0
    for number, word in commands:
        if session.over:
            raise ConfigurationError(f"line {number}: the game ended in line {last}")
        session.act(word)
        last = number
        if visualize:
            click.echo("\n".join([*session.window(), ""]))
        if as_json:
            click.echo(json.dumps(session.frame()), file=document_stream())
        sys.stdout.flush()
    for line in session.result_lines():
        click.echo(line, err=as_json)


def play_by_keys(begin: "Callable[[], PlaySession]") -> "PlaySession":
    """The session that `begin` gives, played until q is pressed; it says how its game ended.

    Keys that were typed before the game was there are dropped. Raises KeyboardInterrupt for Ctrl-C
    and AbortedError for SIGTERM and a closed terminal; the terminal is as it was in any case.
    """
    with _game_terminal():
        sys.stdout.write(PREPARING)
        sys.stdout.flush()
        session = begin()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        for key in _keys(session):
            if key == QUIT:
                break
            _obey(session, key)
    for line in session.result_lines():
        click.echo(line)
    return session


def _obey(session: "PlaySession", key: str) -> None:
    """Do what `key` says; a key without a meaning does nothing."""
    if key == AGAIN:
        session.begin(session.seed)
    elif key == NEW:
        session.begin(session.seed + 1)
    elif key == LIFT:
        session.lift_fog()
    elif key in session.play.keys and not session.over:
        session.act(session.play.keys[key])


def _keys(session: "PlaySession") -> Iterator[str]:
    """The keys that are pressed; before each, and where the size changes, the game is drawn."""
    typed, shown = "", None
    while True:
        size = _size()
        if shown != size:
            text = screen_text(session, size)
            sys.stdout.write(text)
            sys.stdout.flush()
            shown = size
        if not select.select([sys.stdin], [], [], SECONDS_BETWEEN_LOOKS)[0]:
            continue
        data = os.read(sys.stdin.fileno(), 1024)
        if not data:  # the terminal is gone
            return
        found, typed = keys_in(typed + data.decode("utf-8", "replace"))
        yield from found
        shown = None


def keys_in(typed: str) -> tuple[list[str], str]:
    """The keys in what was `typed`, and a sequence at its end that has not come to its own."""
    found = []
    place = 0
    while place < len(typed):
        if typed[place] != ESCAPE:
            found.append(typed[place].lower())
            place += 1
            continue
        end = place + 2  # of "[" or "O"
        if len(typed) < end:
            return found, typed[place:]
        if typed[place + 1] not in "[O":
            place += 1
            continue
        while end < len(typed) and not "@" <= typed[end] <= "~":
            end += 1
        if end >= len(typed):
            return found, typed[place:]
        found += [ARROWS[typed[end]]] if typed[end] in ARROWS else []
        place = end + 1
    return found, ""


def _size() -> os.terminal_size:
    """That of the terminal itself: COLUMNS and LINES do not change with it."""
    with suppress(OSError):
        size = os.get_terminal_size(sys.stdout.fileno())
        if min(size) > 0:
            return size
    return shutil.get_terminal_size()


@contextmanager
def _game_terminal() -> Iterator[None]:
    """A screen of its own and keys that are read as they are pressed, while the block runs."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    with handled_signals(_interrupt):
        try:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, _by_key(before))
            sys.stdout.write(ENTER)
            sys.stdout.flush()
            yield
        finally:
            # The terminal may have been closed.
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
            with suppress(OSError):
                sys.stdout.write(LEAVE)
                sys.stdout.flush()


def _by_key(attributes: list) -> list:  # type: ignore[type-arg]  # as termios has them
    """`attributes` with keys that come one by one and are not shown; Ctrl-Z is off."""
    changed = [*attributes]
    changed[LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO)
    changed[CONTROL_CHARACTERS] = [*attributes[CONTROL_CHARACTERS]]
    changed[CONTROL_CHARACTERS][termios.VMIN], changed[CONTROL_CHARACTERS][termios.VTIME] = 1, 0
    changed[CONTROL_CHARACTERS][termios.VSUSP] = b"\0"  # halted, it would keep the terminal so
    return changed


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise AbortedError("stopped")


def screen_text(session: "PlaySession", size: os.terminal_size) -> str:
    """The screen of `size`, from its upper left corner on."""
    columns, lines = size
    if columns < MIN_COLUMNS or lines < MIN_LINES:
        text = [f"too small: {MIN_COLUMNS} x {MIN_LINES}"[: max(columns - 1, 0)]]
    else:
        view = session.view()
        shown, width = _cells(view, columns - PANEL - 1, lines)
        panel = [*view.panel, "", *HELP]
        if session.over:
            result, numbers = session.result_lines()
            fields = result.replace("|difficulty=", " ").split("|")[2:]
            panel = [*fields, numbers.rpartition(", ")[2], "", *HELP]
        blank = " " * width
        height = min(max(len(shown), len(panel)), lines)
        text = [
            f"{shown[k] if k < len(shown) else blank} "
            f"{one_line(panel[k])[:PANEL] if k < len(panel) else ''}"
            for k in range(height)
        ]
    return HOME + f"{CLEAR_LINE}\n".join(text) + CLEAR_LINE + CLEAR_BELOW


def _cells(view: "GameView", columns: int, lines: int) -> tuple[Sequence[str], int]:
    """The part of the cells around the focus for which there is room, and its width."""
    import numpy as np

    from aimbot_lab.replay.terminal import half_blocks

    height, width, _ = view.picture.shape
    per_character = 1 if os.environ.get("NO_COLOR") else 2
    wide = min(width, columns)
    high = min(height, per_character * lines)
    left = _first(view.focus[1], wide, width)
    top = _first(view.focus[0], high, height)
    if per_character == 1:
        return [row[left : left + wide] for row in view.signs[top : top + high]], wide
    part = np.ascontiguousarray(view.picture[top : top + high, left : left + wide])
    if high % 2:
        part = part[:-1]
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    return half_blocks(part, true_colour=true_colour), wide


def _first(focus: int, shown: int, total: int) -> int:
    """The first of `shown` of `total` places, with `focus` as near to the middle as can be."""
    return max(0, min(focus - shown // 2, total - shown))

"""A game played by the keys of a terminal, which is given back as it was."""

import os
import select
import shutil
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.play.screen import MIN_COLUMNS, MIN_LINES, screen_text
from aimbot_lab.cli.processes.stopping import handled_signals
from aimbot_lab.foundation.errors import AbortedError, ConfigurationError

if TYPE_CHECKING:
    from aimbot_lab.replay.play_session import PlaySession

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a screen of its own, no cursor
ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
ESCAPE = "\x1b"
QUIT, AGAIN, NEW, LIFT = "q", "r", "n", "m"
SECONDS_BETWEEN_LOOKS = 0.5  # at the terminal's size
LOCAL_FLAGS, CONTROL_CHARACTERS = 3, 6  # places among the attributes of a terminal


def refuse_small_terminal() -> None:
    """Raise ConfigurationError where the terminal has no room for a game."""
    columns, lines = _size()
    if columns < MIN_COLUMNS or lines < MIN_LINES:
        has, needs = f"{columns} x {lines}", f"{MIN_COLUMNS} x {MIN_LINES}"
        raise ConfigurationError(f"the terminal has {has} characters; play needs {needs}")


def play_by_keys(session: "PlaySession") -> None:
    """Play until q is pressed; then, where the game ended, say how.

    Raises KeyboardInterrupt for Ctrl-C and AbortedError for SIGTERM and a closed terminal; the
    terminal is as it was in any case.
    """
    with _game_terminal():
        for key in _keys(session):
            if key == QUIT:
                break
            _obey(session, key)
    for line in session.result_lines():
        click.echo(line)


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
            _draw(session, size)
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


def _draw(session: "PlaySession", size: os.terminal_size) -> None:
    text = screen_text(session, size)
    sys.stdout.write(text)
    sys.stdout.flush()


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

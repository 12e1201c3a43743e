"""A game played by commands, one a line."""

import json
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from aimbot_lab.cli.processes.streams import document_stream
from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line, shortened

if TYPE_CHECKING:
    from aimbot_lab.replay.play_session import PlaySession

MAX_BYTES = 2**22  # of a file of commands
MAX_SHOWN = 40  # characters of a word in a refusal


class Command(NamedTuple):
    """A word, and the line on which it stands, counted from 1."""

    line: int
    word: str


def read_commands(path: Path | None, allowed: Collection[str]) -> Iterable[Command]:
    """The commands in the file at `path`, all checked; else those of the standard input, as they
    come.

    Raises ConfigurationError for a file that can't be read, and for what is no command.
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


def _checked(lines: Iterable[str], allowed: Collection[str]) -> Iterator[Command]:
    for number, line in enumerate(lines, 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        if word not in allowed:
            shown = shortened(one_line(repr(word)), MAX_SHOWN)
            known = ", ".join(allowed)
            raise ConfigurationError(f"line {number}: {shown} is no command; allowed are {known}")
        yield Command(number, word)


def play_commands(
    session: "PlaySession", commands: Iterable[Command], *, visualize: bool, as_json: bool
) -> None:
    """Play `commands`, print what is asked for after each, and how the game ended.

    Raises ConfigurationError for a command after the end.
    """
    last = 0
    for command in commands:
        if session.over:
            what = f"line {command.line}: the game ended in line {last}"
            raise ConfigurationError(what)
        session.act(command.word)
        last = command.line
        if visualize:
            click.echo("\n".join([*session.window(), ""]))
        if as_json:
            click.echo(json.dumps(session.frame()), file=document_stream())
        sys.stdout.flush()
    for line in session.result_lines():
        click.echo(line, err=as_json)

"""`aimbot-lab replay`: an episode that was recorded, played again."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import MAX_LINE, one_line, shortened

if TYPE_CHECKING:
    from aimbot_lab.replay.episode import Replay
    from aimbot_lab.replay.summary import EpisodeSummary

SECONDS_AT_THE_END = 1.5
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # a screen of its own, no cursor
HOME = "\x1b[H"


@click.command(short_help="Play a recorded episode again.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--frames",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a PNG picture of every decision to this folder.",
)
@options.size
@options.speed
@options.as_json
def replay(file: Path, folder: Path | None, size: int | None, speed: float, as_json: bool) -> None:
    """Play the episode in FILE again as its world draws it, and say how it went.

    The file is refused where it was altered, or where it does not play here to the very same
    trajectory as it was recorded. A training keeps a few replays of every lesson, as replays/
    among its artifacts; `aimbot-lab record RUN -o episode.json` makes more.

    \b
    Examples:
      aimbot-lab replay episode.json
      aimbot-lab replay episode.json --frames pictures
    """
    from aimbot_lab.replay.files import load_replay
    from aimbot_lab.replay.summary import summarize

    if not file.is_file():
        raise ConfigurationError(f"{file}: no such replay; aimbot-lab record makes one")
    found = load_replay(file)
    if folder is not None:
        _write_frames(found, folder, size or 480)
    elif sys.stdout.isatty() and not (as_json or os.environ.get("NO_COLOR")):
        _play(found, speed)
    summary = summarize(found)
    if as_json:
        print_json(summary.as_json())
    else:
        _show_summary(summary)


def _play(found: "Replay", speed: float) -> None:
    from aimbot_lab.replay.terminal import Screen, screens

    columns, lines = shutil.get_terminal_size()
    true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
    step = found.episode.frame_seconds / speed
    with _own_screen():
        due = time.monotonic()
        for text in screens(found, Screen(columns, lines, true_colour)):
            click.echo(HOME + text, nl=False, color=True)
            sys.stdout.flush()
            due += step
            time.sleep(max(due - time.monotonic(), 0.0))
        time.sleep(SECONDS_AT_THE_END)


@contextmanager
def _own_screen() -> Iterator[None]:
    """The terminal's second screen, and the first as it was when the block ends."""
    click.echo(ENTER, nl=False, color=True)
    try:
        yield
    finally:
        click.echo(LEAVE, nl=False, color=True)
        sys.stdout.flush()


def _write_frames(found: "Replay", folder: Path, size: int) -> None:
    from PIL import Image

    from aimbot_lab.replay.frames import FrameStyle, frames

    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for count, picture in enumerate(frames(found, FrameStyle(size)), 1):
            Image.fromarray(picture).save(folder / f"{count - 1:04}.png")
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--frames {folder}: can't be written: {reason}") from error
    click.echo(f"{count} pictures are in {folder}", err=True)


def _show_summary(summary: "EpisodeSummary") -> None:
    level = f", difficulty {summary.difficulty}" if summary.difficulty else ""
    click.echo(f"{summary.target}{level}: {summary.outcome} after {summary.took}")
    events = (f", {count} {name}" for name, count in summary.events.items())
    click.echo(f"{summary.decisions} decisions{''.join(events)}")
    rows = [
        (name.replace("_", " "), f"{value:,.1f}") for name, value in summary.reward_terms.items()
    ]
    rows.append(("return", f"{summary.episode_return:,.1f}"))
    click.echo(table(("reward", "sum"), rows))
    if summary.about:
        about = ", ".join(f"{key} {value}" for key, value in summary.about.items())
        click.echo(shortened(one_line(about), MAX_LINE), err=True)
    click.echo(f"plays as recorded: trajectory {summary.trajectory_sha256[:12]}", err=True)

"""How far a piece of work is: a bar on a terminal, plain lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from aimbot_lab.cli.views.view import SECONDS_BETWEEN_LINES, wants_plain_lines

Advance = Callable[[str], None]


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """Call what is given with a few words after each of `total` parts of the work."""
    if wants_plain_lines():
        yield _plain(title, total)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda words: bar.update(task, advance=1, description=f"{title}: {words}")


def _plain(title: str, total: int) -> Advance:
    done = 0
    last = time.monotonic()

    def advance(words: str) -> None:
        nonlocal done, last
        done += 1
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            click.echo(f"{title}: {words}, {done} of {total} done", err=True)

    return advance

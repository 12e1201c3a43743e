"""Plain tables, numbers and files as a person reads them."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import count, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import click

from aimbot_lab.cli.streams import document_stream
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line

SHORTEST = 8  # characters that are left of a name, at least


class Fit(NamedTuple):
    """How a table is made to fit a terminal; what was left out stays in the JSON document."""

    width: int | None  # characters; None: as wide as it gets
    cut: str  # head of the column whose entries may be cut
    spare: Sequence[str] = ()  # heads of columns that may be left out


class _Column(NamedTuple):
    name: str
    head: list[str]  # lines
    cells: list[str]

    @property
    def width(self) -> int:
        return max(map(len, (*self.head, *self.cells)))


def table(head: Sequence[str], rows: Sequence[Sequence[object]], fit: Fit | None = None) -> str:
    """Rows under their heads, columns padded to their widest entry."""
    columns = [
        _Column(one_line(name), [one_line(name)], [one_line(str(row[i])) for row in rows])
        for i, name in enumerate(head)
    ]
    if fit is not None and fit.width is not None and _width(columns) > fit.width:
        columns = _fitted(columns, fit, fit.width)
    heads = [*zip_longest(*(column.head[::-1] for column in columns), fillvalue="")][::-1]
    widths = [column.width for column in columns]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (*heads, *zip(*(column.cells for column in columns), strict=True))
    )


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + 2 * (len(columns) - 1)


def _fitted(columns: Sequence[_Column], fit: Fit, width: int) -> list[_Column]:
    """The columns with heads in several lines, then without the spare ones, then cut."""
    fitted = [column._replace(head=_wrapped_head(column)) for column in columns]
    for spare in fit.spare:
        if _width(fitted) > width:
            fitted = [column for column in fitted if column.name != spare]
    excess = max(_width(fitted) - width, 0)
    return [
        column._replace(
            cells=[cut(cell, max(column.width - excess, SHORTEST)) for cell in column.cells]
        )
        if column.name == fit.cut
        else column
        for column in fitted
    ]


def _wrapped_head(column: _Column) -> list[str]:
    """The head in two lines, or in one where that makes the column no wider."""
    narrowest = max(map(len, (*column.name.split(), *column.cells)))
    wrapped = (textwrap.wrap(column.name, width) for width in count(narrowest))
    return next(lines for lines in wrapped if len(lines) <= 2)


def cut(text: str, width: int) -> str:
    """The beginning of `text`, marked where it was cut to at most `width` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def terminal_width() -> int | None:
    """Characters in a line of standard output; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shortened_number(value: float) -> str:
    """A number of any size with at least three digits, the whole ones all shown."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, indent=2), file=document_stream())


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise ConfigurationError, before long work, where the file `output` can't be written.

    `option` is the one that names it.
    """
    folder = output.absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"{option} {output}: there is no such folder")
    if output.is_dir():
        raise ConfigurationError(f"{option} {output}: is a folder; name a file in it")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise ConfigurationError(f"{option} {output}: can't be written: no permission")


def write_output(content: str | bytes, output: Path | None, *, option: str = "--output") -> None:
    """Write `content` to the file `output`, or to standard output where that is None.

    Raises ConfigurationError where the file can't be written.
    """
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        output.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{option} {output}: can't be written: {reason}") from error
    click.echo(f"written to {output}", err=True)

"""Plain tables and numbers as a person reads them."""

import json
from collections.abc import Sequence
from typing import Any

import click


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under their heads, columns padded to their widest entry."""
    lines = [[str(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rate(value: float | None, lower: float, upper: float) -> str:
    """A win rate with its interval."""
    return "-" if value is None else f"{value:.3f} [{lower:.3f}, {upper:.3f}]"


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, indent=2))

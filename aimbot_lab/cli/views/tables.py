"""Tables on standard output: drawn with rules on a terminal, plain columns elsewhere."""

from collections.abc import Sequence

import click

from aimbot_lab.cli.views.text import table, terminal_width

Section = Sequence[Sequence[str]]


def show_table(head: Sequence[str], sections: Sequence[Section]) -> None:
    """Print sections of rows under their heads."""
    width = terminal_width()
    rows = [row for section in sections for row in section]
    if width is None or width < _least_width(head, rows):
        click.echo(table(head, rows))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head:
        drawn.add_column(Text(name), no_wrap=True)
    for section in sections:
        for row in section:
            drawn.add_row(*map(Text, row))
        drawn.add_section()
    Console().print(drawn)


def _least_width(head: Sequence[str], rows: Section) -> int:
    # Ruled tables are wider by two characters a column; a cut number would be a wrong one.
    columns = zip(head, *rows, strict=True)
    return sum(max(map(len, column)) + 2 for column in columns)

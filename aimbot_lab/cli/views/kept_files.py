"""What commands show of the files that a world's settings name: presets, maps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aimbot_lab.cli.views.text import print_json, table

if TYPE_CHECKING:
    from aimbot_lab.foundation.errors import ConfigurationError
    from aimbot_lab.foundation.world_type import KeptFiles


def show_files(kept: "KeptFiles", files: Sequence[Path], *, as_json: bool) -> None:
    """Print what is in `files`, as a table or as JSON."""
    found = kept.listed(files)
    if as_json:
        print_json(found.documents)
    else:
        click.echo(table(found.head, found.rows))


def check_files(kept: "KeptFiles", files: Sequence[Path], *, noun: str) -> None:
    """Print how many of what `noun` calls are in `files`. Raises what is wrong with them."""
    count = kept.count(files)
    click.echo(f"{count} {f'{noun} is' if count == 1 else f'{noun}s are'} fit to use")


def save_sheet(kept: "KeptFiles", files: Sequence[Path], output: Path) -> None:
    """Draw what is in `files` on one sheet and write it to `output`."""
    sheet = kept.draw(files)
    try:
        sheet.save(output, format="PNG")
    except OSError as error:
        raise unwritten(output, error) from error
    click.echo(f"the sheet is {output}")


def unwritten(output: Path, error: OSError) -> "ConfigurationError":
    """That the file of `--output` can't be written."""
    from aimbot_lab.foundation.errors import ConfigurationError

    reason = error.strerror or error
    return ConfigurationError(f"--output {output}: cannot be written: {reason}")

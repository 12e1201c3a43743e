"""Texts that go to a file or to standard output."""

import os
from pathlib import Path

import click


def check_output(output: Path, *, option: str = "--output") -> None:
    """Raise ConfigurationError, before long work, where the file `output` can't be written.

    `option` is the one that names it.
    """
    from aimbot_lab.foundation.errors import ConfigurationError

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
    from aimbot_lab.foundation.errors import ConfigurationError

    try:
        output.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{option} {output}: can't be written: {reason}") from error
    click.echo(f"written to {output}", err=True)

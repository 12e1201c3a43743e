"""Texts that go to a file or to standard output."""

from pathlib import Path

import click


def write_output(text: str, output: Path | None) -> None:
    """Write `text` to the file `output`, or to standard output where that is None.

    Raises ConfigurationError where the file can't be written.
    """
    if output is None:
        click.echo(text, nl=False)
        return
    from aimbot_lab.foundation.errors import ConfigurationError

    try:
        output.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"--output {output}: can't be written: {reason}") from error
    click.echo(f"written to {output}", err=True)

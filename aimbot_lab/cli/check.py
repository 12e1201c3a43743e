"""`aimbot-lab check`: are these curriculum files right?"""

from pathlib import Path

import click


@click.command(short_help="List the faults of curriculum files.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> int:
    """Check curriculum FILES and list every fault with its place; nothing is created.

    Exit code 0 when all are fit to run, 2 otherwise.

    \b
    Example:
      aimbot-lab check curricula/*.yaml
    """
    from aimbot_lab.experiment.document import check_files

    faults = check_files(files)
    for fault in faults:
        click.echo(fault, err=True)
    if not faults:
        click.echo(f"{len(files)} {'file is' if len(files) == 1 else 'files are'} fit to run")
    return 2 if faults else 0

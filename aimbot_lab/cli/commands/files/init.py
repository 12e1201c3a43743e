"""`aimbot-lab init`: a project to begin with."""

import shlex
from pathlib import Path

import click


@click.command(short_help="Write a project to begin with.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a project into DIR: a curriculum, a sweep over it, a README and a .gitignore.

    Refuses a folder that has one of these files already, and then writes nothing.

    \b
    Example:
      aimbot-lab init my-agents
    """
    from aimbot_lab.shipped.new_project import write_project

    for path in write_project(folder):
        click.echo(str(path))
    go = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    steps = [*go, "aimbot-lab check", "aimbot-lab run walk", "aimbot-lab ui"]
    click.echo("\n".join(["next:", *(f"  {step}" for step in steps)]), err=True)

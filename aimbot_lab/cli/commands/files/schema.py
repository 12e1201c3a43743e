"""`aimbot-lab schema`: what an editor needs to complete and check our YAML files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import click

from aimbot_lab.cli.views.files import write_output


class Document(NamedTuple):
    """A kind of YAML file: the heading of its schema, and the class that validates it."""

    title: str
    load: Callable[[], type]  # when it is asked for, since a class may take long to import


def _curriculum() -> type:
    from aimbot_lab.experiment.config.settings import CurriculumFile

    return CurriculumFile


def _sweep() -> type:
    from aimbot_lab.sweep.settings import SweepFile

    return SweepFile


DOCUMENTS: Mapping[str, Document] = MappingProxyType(
    {
        "curriculum": Document("aimbot-lab: a curriculum", _curriculum),
        "sweep": Document("aimbot-lab: a sweep", _sweep),
    }
)


@click.command(short_help="Print the JSON Schema of our files.")
@click.argument("kind", type=click.Choice(list(DOCUMENTS)), default="curriculum")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write, replaced where it exists. [default: standard output]",
)
def schema(kind: str, output: Path | None) -> None:
    """Print the JSON Schema of a KIND of file (by default: curriculum).

    An editor that speaks YAML completes and checks with it a file whose first line names it:
    # yaml-language-server: $schema=curriculum.schema.json

    \b
    Example:
      aimbot-lab schema curriculum -o curriculum.schema.json
    """
    from aimbot_lab.experiment.config.schema import document_schema, missing_entries, schema_text

    for line in missing_entries():
        click.echo(f"warning: {line}", err=True)
    document = DOCUMENTS[kind]
    text = schema_text(document_schema(document.load(), title=document.title))
    write_output(text, output)

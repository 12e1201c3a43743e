"""What a shell completes, and `aimbot-lab completion`, which prints a shell's script for it.

A shell asks at each press of Tab, so nothing heavy is imported: names are read from folders.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.shipped.named_files import CURRICULUM, SWEEP, own_files, shipped_names
from aimbot_lab.tracking.data_folder import locate_data_folder

PROGRAM = "aimbot-lab"
VARIABLE = "_AIMBOT_LAB_COMPLETE"  # by which the program knows that a shell asks
SHELLS = ("bash", "zsh", "fish")
MAX_RUNS = 50
SHORT_ID = 12
_RUN_ID = re.compile(r"[0-9a-f]{32}")
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[Any]]]


@click.command(short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script by which SHELL completes commands, options, names, files and run ids.

    For good, put one of these lines into ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:

    \b
      eval "$(aimbot-lab completion bash)"
      eval "$(aimbot-lab completion zsh)"
      aimbot-lab completion fish | source

    \b
    Example:
      aimbot-lab completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())


def complete_files(*kinds: str) -> Completer:
    """Names of the user's own and the shipped files of these kinds, else whatever files match.

    A kind is "curriculum" or "sweep".
    """

    def complete(_context: Any, _parameter: Any, begun: str) -> list[CompletionItem[Any]]:
        names = [name for name in file_names(*kinds) if name.startswith(begun)]
        return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]

    return complete


def file_names(*kinds: str) -> list[str]:
    """The names of the user's own and the shipped files of these kinds, each once."""
    known = [kind for kind in (CURRICULUM, SWEEP) if kind.noun in kinds]
    own = [Path(file).stem for kind in known for file in own_files(kind)]
    return list(dict.fromkeys([*own, *(name for kind in known for name in shipped_names(kind))]))


def complete_runs(context: click.Context, _parameter: Any, begun: str) -> list[CompletionItem[Any]]:
    """Ids of runs in the data folder, newest first, and `latest`."""
    found: list[str] = []
    with suppress(LabError, OSError):
        found = [*_run_ids(context.params.get("data_dir"))]
    words = ["latest", *(run_id[:SHORT_ID] for run_id in found[:MAX_RUNS])]
    longer = [run_id for run_id in found if len(begun) > SHORT_ID]
    return [CompletionItem(word) for word in [*words, *longer] if word.startswith(begun)]


def _run_ids(data_dir: Path | None) -> Iterator[str]:
    folder = locate_data_folder(data_dir)
    held: dict[str, float] = {}
    for place in (folder.artifacts, folder.runs):
        with suppress(OSError), os.scandir(place) as entries:
            held.update((one.name, one.stat().st_mtime) for one in entries)
    yield from sorted(filter(_RUN_ID.fullmatch, held), key=lambda name: (-held[name], name))

"""`aimbot-lab check`: are these curriculum and sweep files right?"""

import re
from pathlib import Path
from typing import Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_files
from aimbot_lab.cli.views.text import print_json
from aimbot_lab.foundation.shown_text import refusal_lines


@click.command(short_help="List the faults of curricula and sweeps.")
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(path_type=Path, allow_dash=True),
    shell_complete=complete_files("curriculum", "sweep"),
)
@options.overrides
@options.allow_env
@options.as_json
def check(
    files: tuple[Path, ...],
    overrides: tuple[str, ...],
    allow_env: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check curriculum and sweep FILES and list every fault with its place; nothing is created.

    A folder stands for its *.yaml and *.yml files, a name for a file of your own or a shipped one,
    `-` for a curriculum from the standard input. Without FILES those in the folders curricula and
    sweeps are checked. --set and --allow-env are for curricula. Exit code 0 when all are fit to
    run, 2 otherwise.

    \b
    Example:
      aimbot-lab check
      aimbot-lab check goto --set train.total_steps=100000
    """
    from aimbot_lab.experiment.config.document import check_files
    from aimbot_lab.sweep.document import file_diagnostics, is_sweep_file

    def faults_of(path: Path) -> list[str]:
        if is_sweep_file(str(path)):
            return file_diagnostics(str(path))
        if holds_presets(path):
            what = "holds target blocks, not a curriculum; check it with aimbot-lab presets check"
            return [f"{path}: {what}"]
        return check_files([path], overrides, allowed_env=allow_env)

    checked = yaml_files(files or _own_files())
    found = [(path, faults_of(path)) for path in checked]
    lines = [line for _, faults in found for line in faults]
    if as_json:
        print_json(_document(found))
    else:
        for line in lines:
            click.echo(refusal_lines(line), err=True)
    if not lines and not as_json:
        click.echo(f"{len(checked)} {'file is' if len(checked) == 1 else 'files are'} fit to run")
    return 2 if lines else 0


def _own_files() -> tuple[Path, ...]:
    """The project's own files, in the working directory."""
    from aimbot_lab.foundation.errors import ConfigurationError
    from aimbot_lab.shipped.named_files import CURRICULUM, SWEEP, own_files

    found = [Path(file) for kind in (CURRICULUM, SWEEP) for file in own_files(kind)]
    if not found:
        where = f"no {CURRICULUM.folder}/*.yaml and no {SWEEP.folder}/*.yaml"
        raise ConfigurationError(f"name a file: the working directory has {where}")
    return tuple(found)


def holds_presets(path: Path) -> bool:
    """Whether the keys of the file at `path` are names of targets alone."""
    from aimbot_lab.experiment.config.document import read_text
    from aimbot_lab.experiment.config.yaml_reader import read_yaml
    from aimbot_lab.foundation.errors import ConfigurationError
    from aimbot_lab.worlds.registry import default_type

    if str(path) == "-":
        return False  # it can be read but once
    try:
        data = read_yaml(read_text(str(path))).data
    except ConfigurationError:
        return False  # reported by whoever checks it
    return (
        isinstance(data, dict) and bool(data) and data.keys() <= set(default_type().targets(None))
    )


def yaml_files(paths: tuple[Path, ...]) -> list[Path]:
    """The files that `paths` name, each once: folders as their *.yaml and *.yml, in their order.

    Raises ConfigurationError for a folder that holds none, and a name that no file has.
    """
    from aimbot_lab.foundation.errors import ConfigurationError
    from aimbot_lab.shipped.named_files import CURRICULUM, SWEEP, find_file

    files: list[Path] = []
    for path in paths:
        if "\0" in str(path) or not path.is_dir():
            files.append(Path(find_file(str(path), CURRICULUM, SWEEP)))
            continue
        held = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        if not held:
            raise ConfigurationError(f"{path}: the folder holds no *.yaml or *.yml file")
        files += held
    return list(dict.fromkeys(files))


def _document(found: list[tuple[Path, list[str]]]) -> dict[str, Any]:
    return {
        "schema": 1,
        "files": [
            {"file": str(path), "faults": [_fault(line, str(path)) for line in faults]}
            for path, faults in found
        ],
    }


def _fault(line: str, file: str) -> dict[str, Any]:
    """A fault by its parts; one that is not in the file has no line and column."""
    from aimbot_lab.experiment.config.document import shown_file

    name = re.escape(shown_file(file))
    match = re.fullmatch(rf"{name}:(?:(\d+):(\d+):)? (.*)", line)
    if match is None:  # it is about a --set
        return {"line": None, "column": None, "message": line}
    row, column, message = match.groups()
    place = {"line": row and int(row), "column": column and int(column)}
    return {**place, "message": message}

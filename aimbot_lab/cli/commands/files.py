"""Commands about files: init, check, schema, convert, presets, maps."""

import json
import os
import re
import shlex
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_files
from aimbot_lab.cli.text import print_json, table, wrapped, write_output
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.foundation.named_code import NamedCode, allow
from aimbot_lab.foundation.shown_text import one_line, refusal_lines
from aimbot_lab.shipped.named_files import CURRICULUM, SWEEP, find_file, own_files, write_project

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from aimbot_lab.experiment.config.document import LoadedCurriculum
    from aimbot_lab.foundation.world_type import KeptFiles

PRESETS, MAP = "presets", "map"  # keys of the settings of worlds that have such files
MAX_SEED = 2**63 - 1
any_files = click.argument("files", nargs=-1, type=click.Path(path_type=Path))


def _kept(key: str) -> "KeptFiles":
    from aimbot_lab.worlds.registry import files_of_key

    return files_of_key(key)


def file_commands(key: str, *, noun: str, heading: str, rules: str) -> click.Group:
    """The commands that list, check and draw files of a kind, which `key` of a world names.

    `heading` says it all in a line, `rules` when the exit code is 0.
    """
    many = f"{noun}s"

    def example(words: str) -> str:
        return f"\n\n\b\nExample:\n  aimbot-lab {many} {words}"

    about = (
        f"{heading}\n\nFILES are {noun} files or folders of *.yaml and *.yml files; without any, "
        f"the shipped {many}.{example('list')}"
    )
    group = click.Group(many, help=about, short_help=heading)
    listing = f"List the {many} of FILES, or the shipped ones, with their contents."
    checking = f"Report every mistake in the {many} of FILES, or the shipped ones, with its place."
    drawing = f"Draw the {many} of FILES, or the shipped ones, on one sheet."

    @group.command("list", short_help=f"List {many}.", help=listing + example("list --json"))
    @any_files
    @options.as_json
    def show(files: tuple[Path, ...], as_json: bool) -> None:
        found = _kept(key).listed(files)
        if as_json:
            print_json(found.documents)
        else:
            click.echo(table(found.head, found.rows))

    @group.command(
        short_help=f"Check {noun} files for mistakes.",
        help=f"{checking}\n\nExit code 0 if {rules}{example(f'check my_{many}/')}",
    )
    @any_files
    def check(files: tuple[Path, ...]) -> None:
        count = _kept(key).count(files)
        click.echo(f"{count} {f'{noun} is' if count == 1 else f'{many} are'} valid")

    @group.command(
        short_help=f"Draw {many} on one sheet.",
        help=drawing + example(f"draw my_{many}/ -o sheet.png"),
    )
    @any_files
    @options.output("The PNG file to write; an existing one is replaced.", default=f"{many}.png")
    def draw(files: tuple[Path, ...], output: Path) -> None:
        sheet = _kept(key).draw(files)
        try:
            sheet.save(output, format="PNG")
        except OSError as error:
            raise unwritten(output, error) from error
        click.echo(f"written to {output}")

    return group


presets = file_commands(
    PRESETS,
    noun="preset",
    heading="List, check or draw target blocks.",
    rules="every preset is valid and no two presets, shipped ones included, share a name; 2 "
    "otherwise.",
)
maps = file_commands(
    MAP,
    noun="map",
    heading="List, check, draw or make maps.",
    rules="every map is valid, 2 otherwise.",
)


@maps.command("make", short_help="Write a generated map.")
@options.number("--seed", 1, (0, MAX_SEED), "Each seed makes another map.")
@click.option(
    "--obstacle-share",
    default=0.4,
    show_default=True,
    type=options.NumberRange(0, 1),
    help="Share of the cells that are obstacles.",
)
@options.number("--sites", 10, (1, 10), "Treasure sites.")
@options.written
def make_map(seed: int, obstacle_share: float, sites: int, output: Path | None) -> None:
    """Write the map that the generator makes from a seed, the same on every machine.

    \b
    Example:
      aimbot-lab maps make --seed 7 -o my.yaml
    """
    make = _kept(MAP).make
    assert make is not None
    text = make(seed, {"obstacle_share": obstacle_share, "sites": sites})
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with replaced_whole(output) as fresh:
            fresh.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritten(output, error) from error
    click.echo(f"written to {output}")


def unwritten(output: Path, error: OSError) -> ConfigurationError:
    """That the file of `--output` can't be written."""
    reason = error.strerror or error
    return ConfigurationError(f"--output {output}: cannot be written: {reason}")


MADE_SECONDS = 120  # that a world may take to be made


@click.command(short_help="Check curricula and sweeps for mistakes.")
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(path_type=Path, allow_dash=True),
    shell_complete=complete_files("curriculum", "sweep"),
)
@options.overrides
@options.allow_env
@click.option(
    "--make",
    is_flag=True,
    help="Also create the worlds named by files in folders: run their modules, start their builds.",
)
@options.as_json
def check(
    files: tuple[Path, ...],
    overrides: tuple[str, ...],
    allow_env: tuple[str, ...],
    make: bool,
    as_json: bool,
) -> int:
    """Report every mistake in curriculum and sweep FILES with its place; nothing is created.

    A folder means its *.yaml and *.yml files, a name one of your files or a shipped one, and `-` a
    curriculum from stdin. Without FILES, the folders curricula and sweeps are checked. --set and
    --allow-env apply to curricula. Exit code 0 if all files are valid, 2 otherwise.

    Files in folders are only read. Code that a file names, such as the module of an environment,
    runs if you name the file itself or pass --make, in a process of its own.

    \b
    Example:
      aimbot-lab check
      aimbot-lab check goto --set train.total_steps=100000
    """
    found, unmade, notes = list[tuple[Path, list[str]]](), list[str](), list[str]()
    named = {*_named_files(tuple(path for path in files if not _is_folder(path)))}
    for path in _named_files(files or _own_files()):
        faults, loaded = _read(path, overrides, allow_env)
        told = () if loaded is None else loaded.notes
        if loaded is not None and (codes := loaded.unasked):
            if make or path in named:
                again = partial(_read, path, overrides, allow_env, loaded.source_text)
                faults, told = _made(again, path, codes)
            else:
                unmade += [f"{path} ({code.shown})" for code in codes]
        found.append((path, faults))
        notes += [f"{path}: {note}" for note in told]
    lines = [line for _, faults in found for line in faults]
    if as_json:
        print_json(_document(found) | ({"notes": notes} if notes else {}))
        return 2 if lines else 0
    for line in [*lines, *(f"note: {note}" for note in notes)]:
        click.echo(wrapped(refusal_lines(line), err=True), err=True)
    if not lines:
        click.echo(f"{len(found)} {'file is' if len(found) == 1 else 'files are'} valid")
    if unmade:
        what = "only read, their worlds were not made (--make makes them)"
        click.echo(refusal_lines(f"{what}: {', '.join(unmade)}"), err=True)
    return 2 if lines else 0


def _read(
    path: Path, overrides: tuple[str, ...], allow_env: tuple[str, ...], text: str | None = None
) -> "tuple[list[str], LoadedCurriculum | None]":
    """The faults that reading the file finds; without any the curriculum, of a sweep its base.

    `text` is what standard input said, which can be read but once.
    """
    from aimbot_lab.experiment.config.document import parse_curriculum
    from aimbot_lab.experiment.config.yaml_reader import read_text, shown_file
    from aimbot_lab.sweep.document import is_sweep_file, load_sweep

    try:
        if is_sweep_file(str(path)):
            return [], load_sweep(path).base
        if holds_presets(path):
            what = "holds target blocks, not a curriculum; check it with aimbot-lab presets check"
            return [f"{path}: {what}"], None
        file = find_file(str(path), CURRICULUM)
        text = read_text(file) if text is None else text
        return [], parse_curriculum(text, shown_file(file), overrides, allowed_env=allow_env)
    except ConfigurationError as error:
        return [*error.faults], None


def _made(
    read: Callable[[], "tuple[list[str], LoadedCurriculum | None]"],
    path: Path,
    codes: Sequence[NamedCode],
) -> tuple[list[str], tuple[str, ...]]:
    """The faults that `read` finds in the file at `path` once `codes` may run, and its notes.

    It runs in a process of its own, which it may end or hold up without harm.
    """
    import multiprocessing  # which takes as long to import as the rest of this file

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_make, args=(read, codes, theirs))
    child.start()
    theirs.close()
    where = f"{path}: {codes[0].key}: the {codes[0].shown}"
    try:
        if not ours.poll(MADE_SECONDS):
            return [f"{where} made no world within {MADE_SECONDS} s"], ()
        faults, notes = json.loads(ours.recv_bytes())
        return [*map(str, faults)], tuple(map(str, notes))
    except (EOFError, ValueError):
        child.join(1)
        return [f"{where} ended the process that made its world (exit code {child.exitcode})"], ()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid or 0, signal.SIGKILL)
        child.join()


def _make(
    read: Callable[[], "tuple[list[str], LoadedCurriculum | None]"],
    codes: Sequence[NamedCode],
    answer: "Connection",
) -> None:
    os.setsid()  # what it starts ends with it
    os.dup2(2, 1)  # what the code prints is not part of the result
    for code in codes:
        allow(code)
    faults, loaded = read()
    answer.send_bytes(json.dumps([faults, () if loaded is None else loaded.notes]).encode())
    os._exit(0)  # threads of the code may be at work


def _is_folder(path: Path) -> bool:
    return "\0" not in str(path) and path.is_dir()


def _own_files() -> tuple[Path, ...]:
    """The project's own files, in the working directory."""
    found = [Path(file) for kind in (CURRICULUM, SWEEP) for file in own_files(kind)]
    if not found:
        where = f"no {CURRICULUM.folder}/*.yaml and no {SWEEP.folder}/*.yaml"
        raise ConfigurationError(f"name a file: the working directory has {where}")
    return tuple(found)


def holds_presets(path: Path) -> bool:
    """Whether the keys of the file at `path` are names of targets alone."""
    from aimbot_lab.experiment.config.yaml_reader import read_text, read_yaml
    from aimbot_lab.worlds.registry import default_type

    if str(path) == "-":
        return False  # it can be read but once
    try:
        data = read_yaml(read_text(str(path))).data
    except ConfigurationError:
        return False  # reported where it is checked
    return (
        isinstance(data, dict) and bool(data) and data.keys() <= set(default_type().targets(None))
    )


def _named_files(paths: tuple[Path, ...]) -> list[Path]:
    """The files that `paths` name, each once: folders as their *.yaml and *.yml, in their order.

    Raises ConfigurationError for a folder that holds none, and a name that no file has.
    """
    from aimbot_lab.foundation.yaml_files import yaml_files

    files: list[Path] = []
    for path in paths:
        is_folder = _is_folder(path)
        files += yaml_files(path) if is_folder else [Path(find_file(str(path), CURRICULUM, SWEEP))]
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
    from aimbot_lab.experiment.config.yaml_reader import shown_file

    name = re.escape(shown_file(file))
    match = re.fullmatch(rf"{name}:(?:(\d+):(\d+):)? (.*)", line)
    if match is None:  # it is about a --set
        return {"line": None, "column": None, "message": line}
    row, column, message = match.groups()
    place = {"line": row and int(row), "column": column and int(column)}
    return {**place, "message": message}


@click.command(short_help="Print the JSON Schema for editors.")
@click.argument("kind", type=click.Choice(["curriculum", "sweep"]), default="curriculum")
@options.written
def schema(kind: str, output: Path | None) -> None:
    """Print the JSON Schema of a KIND of file (by default: curriculum).

    An editor with YAML support uses it to complete and check files whose first line names it:
    # yaml-language-server: $schema=curriculum.schema.json

    \b
    Example:
      aimbot-lab schema curriculum -o curriculum.schema.json
    """
    from aimbot_lab.experiment.config.schema import document_schema, missing_entries, schema_text

    for line in missing_entries():
        click.echo(f"warning: {line}", err=True)
    if kind == "sweep":
        from aimbot_lab.sweep.settings import SweepFile as Form
    else:
        from aimbot_lab.experiment.config.settings import CurriculumFile as Form  # type: ignore[assignment]
    write_output(schema_text(document_schema(Form, title=f"aimbot-lab: a {kind}")), output)


@click.command(short_help="Convert an ML-Agents or rl-zoo3 file.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@options.written
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=options.LateChoice(lambda: options.target_names(lambda world: world.default_target())),
    help="Target of the lessons; repeatable, with equal weights. [default: goto]",
)
@click.option("--behavior", metavar="NAME", help="Which behavior to convert. [default: the first]")
@click.option(
    "--world",
    type=options.LateChoice(options.world_names),
    help="World to train in. [default: unity for a build or parameters of your own, duel for "
    "self-play, else the arena]",
)
@click.option("--file-name", metavar="BUILD", help="The build that the world unity runs.")
@click.option("--env", metavar="ID", help="rl-zoo3: which entry to convert, by its environment.")
@click.option("--algo", metavar="NAME", help="rl-zoo3: the algorithm. [default: the file's name]")
def convert(
    file: Path,
    output: Path | None,
    targets: tuple[str, ...],
    behavior: str | None,
    world: str | None,
    file_name: str | None,
    env: str | None,
    algo: str | None,
) -> None:
    """Convert FILE (`-`: stdin) to a curriculum.

    FILE is an ML-Agents trainer file, whose lessons keep ML-Agents' own rule, or one of rl-zoo3's
    hyperparams/ALGO.yml. Whatever has no counterpart or had to change is listed on stderr, one line
    each, the important ones first.

    \b
    Examples:
      aimbot-lab convert trainer_config.yaml -o curricula/mine.yaml --target goto
      aimbot-lab convert trainer_config.yaml -o mine.yaml --file-name builds/Game
      aimbot-lab convert hyperparams/ppo.yml --env LunarLander-v3 -o lander.yaml
    """
    from aimbot_lab.experiment.conversion.ml_agents import convert as converted
    from aimbot_lab.experiment.conversion.rl_zoo import convert_entry, is_zoo_file

    notes: tuple[str, ...]
    if env is not None or algo is not None or is_zoo_file(file):
        text, notes = convert_entry(file, env=env, algo=algo)
    else:
        text, notes = converted(
            file, targets=targets, behavior=behavior, world=world, file_name=file_name
        )
    for note in notes:
        click.echo(wrapped(one_line(note), err=True), err=True)
    write_output(text, output)


@click.command(short_help="Create a project to begin with.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a project into DIR: a curriculum, a sweep over it, a README and a .gitignore.

    If the folder already has one of these files, nothing is written.

    \b
    Example:
      aimbot-lab init my-agents
    """
    for path in write_project(folder):
        click.echo(str(path))
    go = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    steps = [*go, "aimbot-lab check", "aimbot-lab run walk", "aimbot-lab ui"]
    click.echo("\n".join(["next:", *(f"  {step}" for step in steps)]), err=True)

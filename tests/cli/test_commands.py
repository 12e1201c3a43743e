"""Every command has help with an example and a line on its page; `check` and `runs` answer."""

import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from test_pages import PAGES, ROOT

from aimbot_lab.cli.main import GROUPS, cli

README = (ROOT / "aimbot_lab" / "cli" / "README.md").read_text(encoding="utf-8")


def paths(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    """Every command and every group of commands, as one types it."""
    for name, command in sorted(group.commands.items()):
        yield (*above, name)
        if isinstance(command, click.Group):
            yield from paths(command, *above, name)


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


PATHS = list(paths(cli))


def examples(path: tuple[str, ...]) -> list[list[str]]:
    """The words of every example in a command's help."""
    result = CliRunner().invoke(cli, [*path, "--help"])
    assert result.exit_code == 0, result.output
    shown = re.split(r"Examples?:\n", result.output)[1].split("\n\n")[0]
    return [shlex.split(line.partition(" > ")[0]) for line in shown.splitlines()]


def called(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The command that an example calls, and the words after it; `start` may be left out."""
    assert words[0] == "aimbot-lab", words
    names, rest, command = (), words[1:], cli
    while isinstance(command, click.Group) and rest:
        left_out = "start" in command.commands and rest[0] not in command.commands
        name = "start" if left_out else rest.pop(0)
        names, command = (*names, name), command.commands[name]
    return names, rest


def test_every_command_has_help_with_an_example_that_calls_it() -> None:
    for path in PATHS:
        found = examples(path)
        assert found, path
        assert all(called(words)[0][: len(path)] == path for words in found), found


def test_examples_use_options_that_there_are() -> None:
    for path in PATHS:
        for words in examples(path):
            names, rest = called(words)
            command = command_at(names)
            known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
            used = {word.partition("=")[0] for word in rest if word.startswith("-")}
            assert used <= known, f"{words}: {used - known}"


def test_every_command_has_a_line_on_its_page() -> None:
    for path in PATHS:
        first, *rest = path
        table = [line for line in README.splitlines() if line.startswith(f"| `aimbot-lab {first}")]
        assert any(all(name in line for name in rest) for line in table), table


def commands_in(page: Path) -> Iterator[list[str]]:
    """The words of every command of ours in the shell blocks and code spans of `page`."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).replace("\n", " ")
    for code in [*"\n".join(blocks).splitlines(), *re.findall(r"`([^`]+)`", prose)]:
        if code.startswith("aimbot-lab "):
            words = shlex.split(code.partition(" > ")[0].replace("\\|", "|"), comments=True)
            yield from map(list, product(*(word.split("|") for word in words)))


def unknown_parts(words: list[str]) -> set[str]:
    """The command or the options among the words of a command that do not exist."""
    if words[1].startswith("-"):
        return set()
    if words[1] not in cli.commands:
        return {words[1]}
    names, rest = called(words)
    known = {name for p in command_at(names).params for name in (*p.opts, *p.secondary_opts)}
    used = {word.partition("=")[0] for word in rest if word.startswith("--")}
    return used - known - {"--help"}


def test_the_pages_name_only_commands_and_options_that_exist() -> None:
    for page in PAGES:
        wrong = [
            (words, unknown) for words in commands_in(page) if (unknown := unknown_parts(words))
        ]
        assert wrong == [], page


def test_every_option_says_what_it_does() -> None:
    for path in PATHS:
        options = [p for p in command_at(path).params if isinstance(p, click.Option)]
        assert [p.name for p in options if not p.help] == []


def test_the_page_has_the_groups_of_the_help() -> None:
    parts = re.split(r"(?m)^## ", README)[1:]
    rows = r"(?m)^\| `aimbot-lab ([\w-]+)"
    told = {
        part.splitlines()[0]: list(dict.fromkeys(re.findall(rows, part)))
        for part in parts
        if re.search(rows, part)
    }
    assert told == {title: [one.name for one in group] for title, group in GROUPS.items()}


@pytest.mark.parametrize("group", [[], ["presets"], ["bench"]])
def test_every_command_is_listed_in_one_whole_line(group: list[str]) -> None:
    output = CliRunner().invoke(cli, [*group, "--help"], terminal_width=60).output
    beginning = "Commands:\n" if group else "this message and exit.\n\n"
    listed = [
        line
        for line in output.split(beginning)[1].splitlines()
        if line.strip(": ") and line[0] == " "
    ]
    assert len(listed) == len(command_at(tuple(group)).commands)  # type: ignore[attr-defined]
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


def test_shipped_curricula_are_fit_to_run() -> None:
    files = sorted(map(str, (ROOT / "curricula").glob("*.yaml")))
    assert files
    result = CliRunner().invoke(cli, ["check", *files], standalone_mode=False)
    assert result.return_value == 0, result.output


def test_runs_of_an_empty_folder_is_an_empty_list_and_creates_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    result = CliRunner().invoke(cli, ["runs", "--json", "--data-dir", str(folder)])
    assert result.exit_code == 0
    assert result.output == "[]\n"
    assert not folder.exists()

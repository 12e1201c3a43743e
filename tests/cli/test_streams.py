"""A lost standard stream never ends the work; only data that can't be kept is an error."""

import json
import os
import subprocess
import sys

import pytest

# A command that tells of its progress and prints a document, as `run` does.
COMMAND = """
import ctypes, json, os, subprocess, sys
import click
from aimbot_lab.cli import main, options
from aimbot_lab.cli import streams
from aimbot_lab.cli.text import print_json

@main.cli.command()
def work():
    for step in range(3):
        click.echo(f"step {step}", err=True)
        print(f"step {step}", file=sys.stderr, flush=True)
    with open(os.devnull) as file:
        assert file.fileno() > 2
    print_json({"steps": 3, "long": "x" * 100_000})
    return 7

@main.cli.command()
def lose_a_connection():
    raise BrokenPipeError(32, "Broken pipe")

@main.cli.command()
@options.as_json
@click.option("--together", is_flag=True)
def talk(as_json, together):
    print("in Python")
    os.write(1, b"by the descriptor\\n")
    ctypes.CDLL(None).printf(b"in C, held back\\n")
    subprocess.run(["echo", "by another program"])
    if together:
        streams.print_together()
        subprocess.run(["echo", json.dumps({"steps": 3})])
    else:
        print_json({"steps": 3})

@main.cli.command()
def end_the_program():
    sys.exit(0)

sys.argv[1:] = sys.argv[1:] or ["work"]
main.main()
"""


def shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with its streams redirected as the shell has it."""
    script = f'exec "$0" -c "$1" "${{@:2}}" {redirection}'
    return subprocess.run(
        ["bash", "-c", script, sys.executable, COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def broken_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2>&- 0<&-"])
def test_progress_that_cannot_be_written_is_dropped(redirection: str) -> None:
    done = shell(redirection)
    assert done.returncode == 7
    assert json.loads(done.stdout)["steps"] == 3


def test_progress_that_nobody_reads_is_dropped() -> None:
    writer = broken_pipe()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, stderr=writer, check=False
    )
    os.close(writer)
    assert done.returncode == 7
    assert json.loads(done.stdout)["steps"] == 3


def test_data_that_nobody_reads_are_dropped_and_the_exit_code_stays() -> None:
    writer = broken_pipe()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.returncode == 7
    assert done.stderr.decode() == "".join(f"step {n}\nstep {n}\n" for n in range(3))


@pytest.mark.parametrize("command", ["work", "--version"])  # more than a buffer, and less
def test_data_that_cannot_be_kept_are_an_error_told_once(command: str) -> None:
    done = shell(">/dev/full", command)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: No space left on device"
    assert done.stderr.count("error") == 1


def test_closed_streams_are_no_place_for_other_files() -> None:
    assert shell("2>&- >&- 0<&-").returncode == 7  # the command checks it


def test_another_broken_pipe_is_told() -> None:
    done = shell("", "lose-a-connection")
    assert done.returncode == 1
    assert done.stderr == "error: a connection was closed from its other side\n"


def test_code_that_ends_the_program_is_told_of() -> None:
    done = shell("", "end-the-program")
    assert done.returncode == 1
    assert done.stderr == "error: called code raised SystemExit: 0\n"


@pytest.mark.parametrize("words", [["--json"], ["--json", "--together"]])
def test_a_document_is_all_that_standard_output_holds_whatever_else_is_printed(
    words: list[str],
) -> None:
    done = shell("", "talk", *words)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"steps": 3})
    said = ["by another program", "by the descriptor", "in C, held back", "in Python"]
    assert sorted(done.stderr.splitlines()) == said

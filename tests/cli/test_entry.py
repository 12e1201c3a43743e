"""The first moments of the program, its text, and how a training is stopped and aborted."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import aimbot_lab.experiment.runs.run as experiment_run
from aimbot_lab.cli.main import Commands
from aimbot_lab.cli.stopping import SIGNALS, stop_on_signals
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.run import RunRequest, run_curriculum
from aimbot_lab.foundation.errors import AbortedError, LabError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import FinishReport, MemoryTracker, RunStatus
from aimbot_lab.training.run_hooks import SilentObserver
from tests.installed import said_by

INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, for one, under nohup
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "aimbot_lab.cli.main":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Impatient())
from aimbot_lab.entry import main
main()
"""
CURRICULUM = "name: a\nlessons: [{name: b, targets: {goto: 1}}]\n"


def test_ctrl_c_while_it_loads_ends_it_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "stopped\n")


def test_ctrl_c_in_a_callback_of_c_is_not_lost_in_what_then_fails(
    capfd: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def compiling() -> None:
        @ctypes.CFUNCTYPE(None)
        def compiled() -> None:
            raise KeyboardInterrupt

        compiled()
        raise LabError("hybrid_ppo refuses this: no compiled object yet")

    group = Commands("lab", commands={"compiling": compiling})
    with pytest.raises(click.Abort):
        group.main(["compiling"], standalone_mode=False)
    assert "Traceback" not in capfd.readouterr().err


def test_names_and_folders_hold_all_letters_under_an_ascii_locale(tmp_path: Path) -> None:
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "c.yaml").write_text(CURRICULUM, encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ["run", f"{folder}/c.yaml", "--name", "größe", "--dry-run", "--data-dir", f"{folder}/d"]
    said_by("-m", "aimbot_lab", *words, **ascii_only)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As in a plain shell, even where the tests run under nohup; afterwards as they were."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_acknowledged_and_asks_to_stop_and_handlers_are_given_back(
    number: signal.Signals,
) -> None:
    notices: list[str] = []
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_on_signals(notices.append) as stop:
        assert [signal.getsignal(number) for number in SIGNALS] != before
        assert not stop()
        signal.raise_signal(number)
        assert stop()
    assert [signal.getsignal(number) for number in SIGNALS] == before
    (notice,) = notices
    assert "after this minibatch" in notice
    assert "saving" in notice


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_aborts(number: signal.Signals) -> None:
    with pytest.raises(AbortedError), stop_on_signals(lambda _: None) as stop:  # noqa: PT012
        stop()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(number)
        pytest.fail("the second signal was not heard")


def test_a_closing_terminal_may_hang_up_twice() -> None:
    with stop_on_signals(lambda _: None) as stop:
        stop()
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert stop()


def test_before_anything_polls_a_signal_ends_it_and_no_run_is_claimed() -> None:
    no_run = pytest.raises(AbortedError, match="no run was created")
    with no_run as raised, stop_on_signals(lambda _: None):
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("the signal was not heard")
    assert raised.value.exit_code == 130


def test_an_abort_that_tells_of_its_run_is_passed_on() -> None:
    with pytest.raises(AbortedError, match=r"^run 1$"), stop_on_signals(lambda _: None):
        raise AbortedError("run 1")


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signals(lambda _: None) as stop:
        signal.raise_signal(signal.SIGHUP)
        assert not stop()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_background_job_of_a_script_hears_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_signals(lambda _: None) as stop:
        stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()


BLOCKED = """
name: tiny
env: {num_envs: 2}
lessons:
  - {name: only, targets: {goto: 1}, completion_criteria: {threshold: 0.9}}
train: {total_steps: 8, n_steps: 2, batch_size: 2, n_epochs: 1, torch_threads: 1}
"""


class InterruptedAt(SilentObserver):
    def __init__(self, stage: str) -> None:
        self._stage = stage

    def stage(self, text: str) -> None:
        if text == self._stage:
            raise KeyboardInterrupt


def interrupt(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


@pytest.fixture
def request_(tmp_path: Path) -> RunRequest:
    file = tmp_path / "tiny.yaml"
    file.write_text(BLOCKED, encoding="utf-8")
    (tmp_path / "data").mkdir()
    return RunRequest(load_curriculum(file, ()), DataFolder(tmp_path / "data"))


def aborted(
    request: RunRequest,
    tracker: MemoryTracker,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stage: str = "",
    should_stop: Callable[[], bool] = lambda: False,
) -> str:
    monkeypatch.setattr(experiment_run, "open_run", lambda *_, **__: tracker)
    with pytest.raises(AbortedError) as raised:
        run_curriculum(request, InterruptedAt(stage), should_stop=should_stop)
    assert raised.value.exit_code == 130
    return str(raised.value)


@pytest.mark.parametrize("stage", ["training", "a step", "saving"])
def test_a_training_that_is_aborted_is_closed_as_killed_and_unsaved(
    stage: str, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker, stop = MemoryTracker(), interrupt if stage == "a step" else lambda: False
    told = aborted(request_, tracker, monkeypatch, stage=stage, should_stop=stop)
    assert told == "aborted: run memory is closed as KILLED, its agent was not saved"
    assert tracker.status == "KILLED"
    assert not any(name.startswith("agent/") for name in tracker.artifacts)


def test_once_the_agent_is_saved_an_abort_says_so(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = MemoryTracker()
    monkeypatch.setattr(experiment_run, "note", interrupt)
    told = aborted(request_, tracker, monkeypatch)
    assert told == "aborted: run memory is closed as KILLED, its agent is saved"
    assert "agent/last/agent.safetensors" in tracker.artifacts


def test_a_run_that_had_ended_keeps_its_status(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = MemoryTracker()
    close = tracker.finish

    def finish(status: RunStatus, **_: Any) -> FinishReport:
        waits = tracker.status is None
        report = close(status)
        if waits:
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr(tracker, "finish", finish)
    told = aborted(request_, tracker, monkeypatch)
    assert told == "aborted: run memory is closed as FAILED, its agent is saved"


@pytest.mark.parametrize(
    ("finish", "wanted"),
    [
        (lambda status, **_: FinishReport(status, waiting=3), "is closed as KILLED by the next"),
        (interrupt, "is closed by the next"),
    ],
)
def test_what_the_store_has_not_taken_in_time_or_is_not_waited_for_is_not_claimed(
    finish: Any, wanted: str, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = MemoryTracker()
    monkeypatch.setattr(tracker, "finish", finish)
    told = aborted(request_, tracker, monkeypatch, should_stop=interrupt)
    assert f"{wanted} `aimbot-lab runs`" in told


def test_before_there_is_a_run_an_interrupt_stays_one(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_run, "open_run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_curriculum(request_, SilentObserver(), should_stop=lambda: False)


# A command that tells of its progress and prints a document, as `run` does.
COMMAND = """
import ctypes, json, os, subprocess, sys
import click
from aimbot_lab.cli import main, options
from aimbot_lab.cli import text
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
        text.print_together()
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


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&- 0<&-"])
def test_progress_that_cannot_be_written_is_dropped(redirection: str) -> None:
    done = shell(redirection)
    assert done.returncode == 7
    assert json.loads(done.stdout)["steps"] == 3


@pytest.mark.parametrize("unread", ["stdout", "stderr"])
def test_data_and_progress_that_nobody_reads_are_dropped_and_the_exit_code_stays(
    unread: str,
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, unread: writer}
    done = subprocess.run([sys.executable, "-c", COMMAND], text=True, check=False, **streams)
    os.close(writer)
    assert done.returncode == 7
    if unread == "stderr":
        assert json.loads(done.stdout)["steps"] == 3
    else:
        assert done.stderr == "".join(f"step {n}\nstep {n}\n" for n in range(3))


@pytest.mark.parametrize("command", ["work", "--version"])  # more than a buffer, and less
def test_data_that_cannot_be_kept_are_an_error_told_once(command: str) -> None:
    done = shell(">/dev/full", command)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: No space left on device"
    assert done.stderr.count("error") == 1


def test_closed_streams_are_no_place_for_other_files() -> None:
    assert shell("2>&- >&- 0<&-").returncode == 7  # the command checks it


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("lose-a-connection", "a connection was closed by the other side"),
        ("end-the-program", "called code raised SystemExit: 0"),
    ],
)
def test_another_broken_pipe_and_code_that_ends_the_program_are_told(
    command: str, wanted: str
) -> None:
    done = shell("", command)
    assert (done.returncode, done.stderr) == (1, f"error: {wanted}\n")


@pytest.mark.parametrize("words", [["--json"], ["--json", "--together"]])
def test_a_document_is_all_that_standard_output_holds_whatever_else_is_printed(
    words: list[str],
) -> None:
    done = shell("", "talk", *words)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"steps": 3})
    said = ["by another program", "by the descriptor", "in C, held back", "in Python"]
    assert sorted(done.stderr.splitlines()) == said

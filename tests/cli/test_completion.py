"""What a shell completes: names, runs and files, found without a heavy import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from test_commands import PATHS, command_at

from aimbot_lab.cli.main import cli
from aimbot_lab.cli.options import MAX_COMPLETIONS, SHELLS, complete_runs
from tests.installed import said_by

OLD, NEW = "a" * 32, "ab" + "0" * 30
RUN_ARGUMENTS = {"run", "runs", "init_from", "sources"}


pytestmark = pytest.mark.usefixtures("here")


def completed(*words: str) -> list[str]:
    """What comes after the last of `words`, begun there, might be."""
    completer = BashComplete(cli, {}, "aimbot-lab", "_AIMBOT_LAB_COMPLETE")
    items = completer.get_completions([*words[:-1]], words[-1])
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in items]


def add_run(data: Path, run_id: str, *, age: int, place: str = "artifacts") -> None:
    folder = data / place / run_id
    folder.mkdir(parents=True)
    os.utime(folder, (1_000_000 - age, 1_000_000 - age))


def test_shipped_names_and_ones_own_are_completed(here: Path) -> None:
    (here / "curricula").mkdir()
    (here / "curricula" / "gopher.yaml").write_text("", encoding="utf-8")
    assert completed("run", "go") == ["gopher", "gorge", "gorge_ppo", "gorge_table", "goto"]
    assert completed("check", "") == [
        *("gopher", "attack", "camera", "cartpole", "doorkey", "duel", "free", "gorge"),
        *("gorge_ppo", "gorge_table", "goto", "mix", "recall", "short", "planted", "rewards"),
    ]
    assert completed("sweep", "start", "pl") == ["planted"]
    assert completed("sweep", "re") == ["report", "rerun", "rewards"]
    assert completed("sweep", "rewards", "--tri") == ["--trials"]


def test_what_is_no_name_is_completed_as_a_file() -> None:
    assert completed("run", "curricula/") == ["<file>"]
    assert completed("run", "zz") == ["<file>"]


def test_runs_are_completed_newest_first(here: Path) -> None:
    assert completed("resume", "") == ["latest"]
    assert list(here.iterdir()) == []
    data = here / ".aimbot-lab"
    add_run(data, OLD, age=9)
    add_run(data, NEW, age=1)
    add_run(data, "opening-" + OLD, age=0, place="runs")
    assert completed("evaluate", "") == ["latest", NEW[:12], OLD[:12]]
    assert completed("compare", "latest", "ab") == [NEW[:12]]
    assert completed("resume", OLD[:14]) == [OLD]
    assert completed("run", "goto", "--init-from", "aa") == [OLD[:12]]
    add_run(here / "other", "c" * 32, age=0)
    assert completed("resume", "--data-dir", "other", "") == ["latest", "c" * 12]
    assert completed("resume", "--data-dir", "/dev/null", "") == ["latest"]
    for number in range(MAX_COMPLETIONS + 3):
        add_run(data, f"{number:032x}", age=0)
    assert len(completed("resume", "")) == MAX_COMPLETIONS + 1


def test_every_argument_that_is_a_run_completes_runs() -> None:
    for path in PATHS:
        for parameter in command_at(path).params:
            if parameter.name in RUN_ARGUMENTS:
                assert parameter._custom_shell_complete is complete_runs


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_its_script(shell: str) -> None:
    told = CliRunner().invoke(cli, ["completion", shell])
    assert told.exit_code == 0
    assert f"_AIMBOT_LAB_COMPLETE={shell}_complete" in told.stdout
    assert "_aimbot_lab_completion" in told.stdout


def test_bash_completes_by_the_script(here: Path) -> None:
    program = here / "aimbot-lab"
    program.write_text(
        f"#!{sys.executable}\nfrom aimbot_lab.entry import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    script = CliRunner().invoke(cli, ["completion", "bash"]).stdout
    asked = "COMP_WORDS=(aimbot-lab run got); COMP_CWORD=2; _aimbot_lab_completion ./aimbot-lab"
    done = subprocess.run(
        ["bash", "-c", f'{script}\n{asked}; echo "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("goto\n", "")


def test_completing_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from click.shell_completion import BashComplete\n"
        "from aimbot_lab.cli.main import cli\n"
        "ask = BashComplete(cli, {}, 'aimbot-lab', 'X').get_completions\n"
        "assert ask(['resume'], '') and ask(['run'], '') and ask(['sweep'], '')\n"
        "heavy = 'torch', 'mlflow', 'optuna', 'numba', 'numpy', 'pydantic', 'stable_baselines3'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert said_by("-c", code) == "[]\n"

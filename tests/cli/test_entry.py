"""The first moments of the program."""

import os
import subprocess
import sys
from pathlib import Path

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


def test_names_and_folders_hold_all_letters_under_an_ascii_locale(tmp_path: Path) -> None:
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "c.yaml").write_text(CURRICULUM, encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ["run", f"{folder}/c.yaml", "--name", "größe", "--dry-run", "--data-dir", f"{folder}/d"]
    done = subprocess.run(
        [sys.executable, "-m", "aimbot_lab", *words],
        env={**os.environ, **ascii_only},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr

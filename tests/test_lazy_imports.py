"""The command line answers before any heavy library is loaded."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "mlflow", "optuna", "stable_baselines3", "numba")


def loaded_by(code: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    report = f"{code}\nimport sys\nprint(*[m for m in {names!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split()) if done.stdout.strip() else set()


PLAN = "run goto --dry-run --processes 2"


@pytest.mark.parametrize("words", ["--help", "run --help", "--version", PLAN, "presets list"])
def test_commands_load_no_heavy_library(words: str) -> None:
    code = f"""
import aimbot_lab.cli.main as main
try:
    main.cli.main({words.split()!r}, standalone_mode=False)
except SystemExit:
    pass
"""
    assert loaded_by(code) == set()


def test_help_loads_nothing_of_runs_and_servers() -> None:
    needless = ("aimbot_lab.tracking.run_folder", "psutil", "ssl", "multiprocessing")
    assert loaded_by("import aimbot_lab.cli.main", needless) == set()


def test_checking_a_curriculum_loads_no_heavy_library() -> None:
    code = """
from aimbot_lab.experiment.config.document import load_curriculum
load_curriculum("curricula/goto.yaml")
"""
    assert loaded_by(code) == set()


def test_the_check_sees_a_heavy_library() -> None:
    assert loaded_by("import numba") == {"numba"}


def test_the_package_itself_loads_no_heavy_library() -> None:
    assert loaded_by("import aimbot_lab; aimbot_lab.train, aimbot_lab.load") == set()


def test_the_server_of_the_panel_starts_without_a_heavy_library() -> None:
    assert loaded_by("import aimbot_lab.panel.server.serve") == set()

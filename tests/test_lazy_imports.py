"""The command line answers before any heavy library is loaded."""

from tests.installed import said_by

HEAVY = ("torch", "mlflow", "optuna", "stable_baselines3", "numba")


def loaded_by(code: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    report = f"{code}\nimport sys\nprint(*[m for m in {names!r} if m in sys.modules])"
    said = said_by("-c", report)
    return set(said.splitlines()[-1].split()) if said.strip() else set()


PLAN = "run goto --dry-run --processes 2"
COMMANDS = ["--help", "run --help", "--version", PLAN, "presets list"]


def test_commands_the_package_and_the_server_of_the_panel_load_no_heavy_library() -> None:
    code = f"""
import aimbot_lab
aimbot_lab.train, aimbot_lab.load
import aimbot_lab.cli.main as main
for words in {COMMANDS!r}:
    try:
        main.cli.main(words.split(), standalone_mode=False)
    except SystemExit:
        pass
import aimbot_lab.panel.server.serve
"""
    assert loaded_by(code) == set()


def test_help_loads_nothing_of_runs_and_servers() -> None:
    needless = ("aimbot_lab.tracking.run_folder", "psutil", "ssl", "multiprocessing")
    assert loaded_by("import aimbot_lab.cli.main", needless) == set()


def test_the_check_sees_a_heavy_library() -> None:
    assert loaded_by("import numba") == {"numba"}

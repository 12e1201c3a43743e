"""The order of all tests, and what they share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aimbot_lab.cluster import connection
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.foundation.named_code import EVERYTHING, TRUST

collect_seldom()


# Of files that take more than half a minute on a busy machine, the longest first; but that of the
# laws of worlds when compile_kernels.py has compiled what it needs.
LONGEST = (
    *("training/test_library_equality", "cli/test_runs_on_a_server", "training/test_onnx_export"),
    *("panel/test_panel_page", "panel/test_panel_entrance_page", "sweep/test_sweep_command"),
    *("cli/test_resume_command", "cli/test_run_command", "panel/test_panel_play_page"),
    *("panel/test_panel_runs_page", "unity/test_unity_runs", "unity/test_builds"),
    *("worlds/test_conformance", "training/test_onnx_memory", "worlds/test_gymnasium_processes"),
    *("training/test_resuming", "cli/test_code_that_files_name", "cli/test_judging_commands"),
    *("cli/test_seeds", "test_package_of_a_stranger"),
)


HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to read tests elsewhere: one compiles a file, and the others find that."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if config.args == config.getini("testpaths"):
        places = sorted(
            str(path) for path in HERE.iterdir() if path.is_dir() or path.match("test_*.py")
        )
        first = int(worker.removeprefix("gw")) * len(places) // 4 % len(places)
        config.args[:] = [*places[first:], *places[:first]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that no worker is left alone with one at the end."""
    turn = {HERE / f"{name}.py": at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (turn.get(item.path, len(turn)), item.path))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ray reads once how it is protected, when it is imported: all of its tests are protected."""
    if item.get_closest_marker("ray"):
        connection._protect()


@pytest.fixture(autouse=True)
def _code_that_may_run() -> Iterator[None]:
    """What one test's command may run, the next one may not."""
    before = os.environ.get(TRUST)
    yield
    os.environ.pop(TRUST, None)
    if before is not None:
        os.environ[TRUST] = before


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that files name runs where this test reads them."""
    monkeypatch.setenv(TRUST, EVERYTHING)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: an empty one, for which no variable names another data folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIMBOT_LAB_DATA_DIR", raising=False)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def _logs_of_sb3(tmp_path_factory: pytest.TempPathFactory) -> None:
    """stable-baselines3 makes a folder for each model that has no logger: here, not beside us."""
    os.environ["SB3_LOGDIR"] = str(tmp_path_factory.mktemp("sb3"))

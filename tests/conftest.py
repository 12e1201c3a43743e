"""The order of all tests, and what they share."""

import os
from collections.abc import Iterator

import pytest

from aimbot_lab.cluster import connection
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.foundation.named_code import EVERYTHING, TRUST

collect_seldom()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a slow test begin first, so that no worker is left alone with one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


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


@pytest.fixture(scope="session", autouse=True)
def _logs_of_sb3(tmp_path_factory: pytest.TempPathFactory) -> None:
    """stable-baselines3 makes a folder for each model that has no logger: here, not beside us."""
    os.environ["SB3_LOGDIR"] = str(tmp_path_factory.mktemp("sb3"))

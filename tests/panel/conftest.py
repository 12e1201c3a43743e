"""One panel for the tests that leave nothing behind in it, and a browser for each file."""

from collections.abc import Iterator

import pytest
from browser_page import Browser, running_browser
from panel_server import PanelUnderTest, running_panel


@pytest.fixture(scope="session")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PanelUnderTest]:
    here = tmp_path_factory.mktemp("here")
    with running_panel(here / "data", here=here) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found
    assert found.faults == []

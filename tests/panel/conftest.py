"""One panel for the tests that leave nothing behind in it, and a browser for each file."""

from collections.abc import Iterator

import pytest
from browser_page import Browser, running_browser
from panel_server import SECONDS, PanelUnderTest, running_panel

from aimbot_lab.panel.server import lab
from aimbot_lab.panel.server.actors import present_agent


@pytest.fixture(scope="session", autouse=True)
def _busy_machine() -> Iterator[None]:
    """A page of MLflow may start slowly, and a run may show its agent late, beside other tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "WAIT_SECONDS", SECONDS)
        patch.setitem(present_agent.__kwdefaults__, "seconds", SECONDS)
        yield


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

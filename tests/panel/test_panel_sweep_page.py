"""Sweeps on the page: begun, stopped, resumed, and judged by what fresh seeds confirm."""

from pathlib import Path

from browser_page import Browser, needs_chromium, wait_for_text
from panel_server import running_panel

pytestmark = needs_chromium


def test_a_sweep_is_stopped_resumed_and_headed_by_what_fresh_seeds_confirmed(
    browser: Browser, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with running_panel(data, here=tmp_path) as panel, browser.page(panel, "sweep") as page:
        page.get_by_role("button", name="Start a sweep").click()
        page.get_by_label("File").select_option("shipped:planted")
        page.get_by_label("Name").fill("mine")
        page.get_by_role("spinbutton", name="Trials").fill("2000")
        page.get_by_role("button", name="Start", exact=True).click()
        wait_for_text(page, "h1", "^mine$")
        wait_for_text(page, ".outcome", "^Best of the search so far, not confirmed: trial ")
        page.get_by_role("button", name="Stop").click()
        wait_for_text(page, ".run-head .state", "^stopped$")
        page.locator(".trials tbody tr").first.wait_for()
        page.get_by_role("button", name="Resume").click()
        assert page.get_by_label("Name").input_value() == "mine"
        page.get_by_role("spinbutton", name="Trials").fill("4")
        page.get_by_role("button", name="Resume", exact=True).click()
        wait_for_text(page, ".outcome", r"^Confirmed on 2 fresh seeds: trial \d+.*, 0\.\d+ \[")
        wait_for_text(page, ".run-head .state", "^done$")
        wait_for_text(page, ".quiet", f"in MLflow: aimbot-lab ui [0-9a-f]{{12}} --data-dir {data}")
